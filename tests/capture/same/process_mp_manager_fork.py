import multiprocessing as mp

c = mp.get_context("fork")
if __name__ == "__main__":
    with c.Manager() as m:
        d = m.dict()
        d["a"] = 1
        print(dict(d))
