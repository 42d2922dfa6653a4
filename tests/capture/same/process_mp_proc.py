# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])


def f(x):
    print("c", x, mp.current_process().name, flush=True)


if __name__ == "__main__":
    q = c.Process(target=f, args=(1,))
    q.start()
    q.join()
    print(q.exitcode)
