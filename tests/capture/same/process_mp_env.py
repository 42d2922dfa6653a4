# arguments: spawn fork forkserver
import multiprocessing as mp
import os
import sys

c = mp.get_context(sys.argv[1])


def f(q):
    q.put((sorted(k for k in os.environ), sys.argv, sys.path[0] != "", __name__))


if __name__ == "__main__":
    q = c.Queue()
    w = c.Process(target=f, args=(q,))
    w.start()
    print(q.get())
    w.join()
