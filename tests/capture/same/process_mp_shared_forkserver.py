import multiprocessing as mp

c = mp.get_context("forkserver")


def f(v):
    v.value += 1


if __name__ == "__main__":
    v = c.Value("i", 1)
    w = c.Process(target=f, args=(v,))
    w.start()
    w.join()
    print(v.value)
