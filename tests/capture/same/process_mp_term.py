# arguments: spawn fork forkserver
import sys
import multiprocessing as mp
import time

c = mp.get_context(sys.argv[1])


def f():
    time.sleep(60)


if __name__ == "__main__":
    q = c.Process(target=f)
    q.start()
    time.sleep(1)
    q.terminate()
    q.join()
    print(q.exitcode)
