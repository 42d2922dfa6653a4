import sys


def h(*a):
    1 / 0


sys.excepthook = h
raise ValueError("h")
