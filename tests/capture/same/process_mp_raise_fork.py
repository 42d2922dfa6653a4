import multiprocessing as mp

c = mp.get_context("fork")


def f():
    raise ValueError("child")


if __name__ == "__main__":
    q = c.Process(target=f)
    q.start()
    q.join()
    print(q.exitcode)
