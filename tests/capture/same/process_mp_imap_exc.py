# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])


def f(x):
    if x == 2:
        raise KeyError(x)
    return x


if __name__ == "__main__":
    with c.Pool(1) as q:
        try:
            print(list(q.imap(f, range(4))))
        except KeyError as e:
            print("K", e)
