import atexit

atexit.register(print, "no")
atexit.unregister(print)
