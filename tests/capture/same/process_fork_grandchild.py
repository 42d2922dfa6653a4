import os
import sys

if not os.fork():
    if not os.fork():
        print("g", flush=True)
        os._exit(0)
    os.wait()
    sys.exit(0)
os.wait()
print("p")
