"""ProcessPoolExecutor with fresh processes: initializer, exceptions, a worker that dies."""

import concurrent.futures
import multiprocessing
import os
import sys


def begin(value):
    globals()["given"] = value


def work(n):
    if n == 3:
        raise KeyError(n)
    return n * globals()["given"], __name__, len(sys.argv), "__main__" in sys.modules


def die(_):
    os._exit(9)


if __name__ == "__main__":
    for kind in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(kind)
        with concurrent.futures.ProcessPoolExecutor(2, context, begin, (10,)) as pool:
            print(list(pool.map(work, range(3))))
            print(repr(pool.submit(work, 3).exception()))
            try:
                pool.submit(die, 1).result()
            except concurrent.futures.process.BrokenProcessPool as error:
                print(type(error).__name__)
