import multiprocessing as mp


class M:
    pass


def f(q):
    m = M()
    m.v = 3
    q.put(m)


if __name__ == "__main__":
    for kind in ("spawn", "fork", "forkserver"):
        c = mp.get_context(kind)
        q = c.Queue()
        w = c.Process(target=f, args=(q,))
        w.start()
        print(kind, q.get().v, type(q.get).__name__)
        w.join()
