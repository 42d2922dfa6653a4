import atexit
import sys

atexit.register(lambda: sys.exit(5))
print("m")
