# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])


def f(v):
    v.value += 1


if __name__ == "__main__":
    v = c.Value("i", 1)
    w = c.Process(target=f, args=(v,))
    w.start()
    w.join()
    print(v.value)
