import inspect


def f():
    pass


print(inspect.getsource(f), inspect.getmodule(f), inspect.getfile(f) == __file__)
