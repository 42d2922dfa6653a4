# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])


def f():
    raise ValueError("child")


if __name__ == "__main__":
    q = c.Process(target=f)
    q.start()
    q.join()
    print(q.exitcode)
