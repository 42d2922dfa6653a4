# arguments: spawn fork forkserver
import sys
import multiprocessing as mp
import os

c = mp.get_context(sys.argv[1])


def f():
    os._exit(8)


if __name__ == "__main__":
    w = c.Process(target=f)
    w.start()
    w.join()
    print(w.exitcode)
