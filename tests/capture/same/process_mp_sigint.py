# arguments: spawn fork forkserver
import sys
import multiprocessing as mp

c = mp.get_context(sys.argv[1])
import signal


def f():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("kb", flush=True)


if __name__ == "__main__":
    w = c.Process(target=f)
    w.start()
    w.join()
    print(w.exitcode)
