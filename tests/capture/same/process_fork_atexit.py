import atexit
import os
import sys

atexit.register(lambda: print("x", flush=True))
if not os.fork():
    sys.exit(0)
os.wait()
