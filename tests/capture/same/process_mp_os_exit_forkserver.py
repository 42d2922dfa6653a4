import multiprocessing as mp
import os

c = mp.get_context("forkserver")


def f():
    os._exit(8)


if __name__ == "__main__":
    w = c.Process(target=f)
    w.start()
    w.join()
    print(w.exitcode)
