import multiprocessing as mp

c = mp.get_context("fork")


class M:
    pass


def f(q):
    m = M()
    m.v = 3
    q.put(m)


if __name__ == "__main__":
    q = c.Queue()
    w = c.Process(target=f, args=(q,))
    w.start()
    print(q.get().v, type(q.get).__name__)
    w.join()
