import atexit

atexit.register(print, "once")
atexit._run_exitfuncs()
print("m")
