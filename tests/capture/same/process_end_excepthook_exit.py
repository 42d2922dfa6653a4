import sys


def h(*a):
    sys.exit(9)


sys.excepthook = h
raise ValueError("h")
