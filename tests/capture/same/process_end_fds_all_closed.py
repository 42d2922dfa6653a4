import os

print("a", flush=True)
os.closerange(3, 65536)
