import os
import sys
import time

if os.fork():
    print("parent", flush=True)
    sys.exit(0)
os.setsid()
os.close(0)
os.close(1)
os.close(2)
time.sleep(0.5)
os._exit(0)
