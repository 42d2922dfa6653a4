import atexit

atexit.register(print, "no")
atexit._clear()
print("m")
