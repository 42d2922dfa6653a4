# modes: run api watch prove
# What the program does itself raises the same events; those of the profiler come beside.
import os
import subprocess
import sys
import tempfile
from collections import Counter

events = Counter()
own = tempfile.mkdtemp()


def hook(event, values):
    if any(isinstance(each, str) and each.startswith(own) for each in values) or event in ("os.fork", "os.system"):
        events[event] += 1


sys.addaudithook(hook)
with open(own + "/file", "w") as file:
    file.write("x")
os.rename(own + "/file", own + "/other")
os.listdir(own)
subprocess.run(["true"], cwd=own, check=True)
os.system("true")
if os.fork() == 0:
    os._exit(0)
os.wait()
compile("1", own + "/code.py", "exec")
print(sorted(events.items()))


def refuse(event, values):
    if event == "socket.getaddrinfo":
        raise PermissionError(event)


sys.addaudithook(refuse)
try:
    __import__("socket").getaddrinfo("localhost", 1)
except PermissionError as error:
    print("refused", error)
