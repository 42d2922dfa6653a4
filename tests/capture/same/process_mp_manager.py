# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])
if __name__ == "__main__":
    with c.Manager() as m:
        d = m.dict()
        d["a"] = 1
        print(dict(d))
