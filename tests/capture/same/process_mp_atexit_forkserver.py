import multiprocessing as mp

c = mp.get_context("forkserver")


def f():
    from multiprocessing import util

    util.Finalize(None, lambda: print("fin", flush=True), exitpriority=1)


if __name__ == "__main__":
    w = c.Process(target=f)
    w.start()
    w.join()
