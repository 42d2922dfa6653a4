# arguments: spawn fork forkserver
import multiprocessing as mp
import sys

c = mp.get_context(sys.argv[1])


def f(k):
    k.send(sys.modules["__main__"].__name__)
    k.close()


if __name__ == "__main__":
    a, b = c.Pipe()
    w = c.Process(target=f, args=(b,))
    w.start()
    print(a.recv())
    w.join()
