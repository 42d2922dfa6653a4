import os
import signal
import time

p = os.fork()
if not p:
    time.sleep(30)
    os._exit(0)
time.sleep(0.2)
os.kill(p, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))
