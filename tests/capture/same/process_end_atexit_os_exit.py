import atexit
import os

atexit.register(lambda: os._exit(6))
print("m", flush=True)
