# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])


def f():
    from multiprocessing import util

    util.Finalize(None, lambda: print("fin", flush=True), exitpriority=1)


if __name__ == "__main__":
    w = c.Process(target=f)
    w.start()
    w.join()
