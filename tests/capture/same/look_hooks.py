"""Hooks of the interpreter, set and called by the program."""

import sys
import threading


def show(kind):
    def hook(*args):
        print(kind, type(args[0]).__name__, len(args))

    return hook


print(sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__)
print(sys.unraisablehook is sys.__unraisablehook__, sys.displayhook is sys.__displayhook__)
print(sys.breakpointhook is sys.__breakpointhook__)
threading.excepthook = show("thread")
sys.unraisablehook = show("unraisable")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()


class Bad:
    def __del__(self):
        raise ValueError("in del")


Bad()
sys.excepthook = show("main")
raise RuntimeError("end")
