# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])
import threading


def f(q):
    q.put([t.name for t in threading.enumerate() if "Queue" not in t.name])


if __name__ == "__main__":
    q = c.SimpleQueue()
    w = c.Process(target=f, args=(q,))
    w.start()
    print(q.get())
    w.join()
