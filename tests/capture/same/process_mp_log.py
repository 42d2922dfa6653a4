import logging
import multiprocessing as mp

if __name__ == "__main__":
    mp.log_to_stderr(logging.INFO)
    w = mp.get_context("fork").Process(target=print, args=(1,))
    w.start()
    w.join()
