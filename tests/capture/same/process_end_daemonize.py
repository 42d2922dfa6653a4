import os

print("p", flush=True)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.closerange(3, 1024)
print("d", flush=True)
os._exit(0)
