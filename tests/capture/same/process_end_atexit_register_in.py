import atexit

atexit.register(lambda: atexit.register(print, "inner"))
