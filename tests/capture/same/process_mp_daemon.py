# arguments: spawn fork forkserver
import sys
import multiprocessing as mp
import time

c = mp.get_context(sys.argv[1])


def f():
    time.sleep(60)


if __name__ == "__main__":
    w = c.Process(target=f, daemon=True)
    w.start()
    print("m", w.daemon)
