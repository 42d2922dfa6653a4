# modes: run watch prove api
"""A child that is ended at once: it may not have come to its first line, nor to what Python does after a fork."""

import os
import signal
import time

statuses = set()
for _ in range(60):
    child = os.fork()
    if child == 0:
        time.sleep(20)
        os._exit(0)
    os.kill(child, signal.SIGTERM)
    statuses.add(os.waitpid(child, 0)[1])
print(statuses)
