import atexit

print(atexit._ncallbacks() < 50)
atexit.register(print, "one")
atexit.register(print, "two")
