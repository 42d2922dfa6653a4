from __future__ import annotations


def f(x: nope):
    pass


print(f.__annotations__)
