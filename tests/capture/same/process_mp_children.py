# arguments: spawn fork forkserver
import sys
import multiprocessing as mp
import time

c = mp.get_context(sys.argv[1])


def f():
    time.sleep(0.5)


if __name__ == "__main__":
    w = c.Process(target=f)
    w.start()
    print(len(mp.active_children()))
    w.join()
    print(mp.active_children())
