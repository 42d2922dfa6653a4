import atexit


def f():
    1 / 0


atexit.register(f)
print("m")
