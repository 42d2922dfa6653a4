# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])
from concurrent.futures import ProcessPoolExecutor as E


class X(Exception):
    pass


def f(x):
    raise X(x)


if __name__ == "__main__":
    with E(1, mp_context=c) as e:
        try:
            e.submit(f, 3).result()
        except X as x:
            print("X", x.args)
