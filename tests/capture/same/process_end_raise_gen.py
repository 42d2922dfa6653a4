def g():
    yield 1
    raise KeyError("k")


list(g())
