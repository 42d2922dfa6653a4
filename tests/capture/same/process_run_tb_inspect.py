import inspect


def f():
    return [(i.filename == __file__, i.function, i.lineno) for i in inspect.stack()]


print(f())
