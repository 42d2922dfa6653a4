# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])
from concurrent.futures import ProcessPoolExecutor as E


def f(x):
    return x + 1


if __name__ == "__main__":
    with E(2, mp_context=c) as e:
        print(list(e.map(f, range(4))))
