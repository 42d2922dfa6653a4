import signal
import subprocess
import time

n = []
signal.signal(signal.SIGCHLD, lambda *a: n.append(1))
subprocess.run(["true"])
time.sleep(0.2)
print(len(n))
