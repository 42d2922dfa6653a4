# arguments: spawn fork forkserver
# modes: run prove
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])


class R:
    def __init__(self, x):
        self.x = x


def f(x):
    return R(x)


if __name__ == "__main__":
    with c.Pool(2) as q:
        print([r.x for r in q.map(f, range(5))])
