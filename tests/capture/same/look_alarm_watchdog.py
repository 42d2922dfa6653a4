"""A watchdog of the program ends it unless it ends itself."""

import signal
import time

signal.alarm(5)
for _ in range(3):
    time.sleep(0.1)
print("done", signal.alarm(0) > 0)
