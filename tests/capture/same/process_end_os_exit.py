import os

print("p", flush=True)
os._exit(3)
