# arguments: spawn fork forkserver
import multiprocessing as mp
import sys

c = mp.get_context(sys.argv[1])


def f(x):
    sys.exit(x)


if __name__ == "__main__":
    q = c.Process(target=f, args=(5,))
    q.start()
    q.join()
    print(q.exitcode)
