import os
import sys

print("a", flush=True)
if not os.fork():
    print("child")
    sys.exit(0)
os.wait()
print("parent")
