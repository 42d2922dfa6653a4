"""The same in a program that takes warnings for errors, with a pool, with Python code of its own after each fork."""

import multiprocessing
import os
import time
import warnings

warnings.simplefilter("error")
os.register_at_fork(before=lambda: time.sleep(0.001), after_in_parent=lambda: time.sleep(0.001))


def double(x):
    return 2 * x


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    for _ in range(4):
        child = context.Process(target=double, args=(3,))
        child.start()
        child.join()
        print(child.exitcode)
    print(len(os.listdir("/proc/self/task")) < 12)
