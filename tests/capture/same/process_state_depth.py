import sys


def f(n=0):
    try:
        return f(n + 1)
    except RecursionError:
        return n


print(f())
sys.setrecursionlimit(300)
print(f())
