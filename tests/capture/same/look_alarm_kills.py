"""An alarm without a handler ends the program."""

import signal
import sys
import time

print("begin")
sys.stdout.flush()
signal.setitimer(signal.ITIMER_REAL, 0.3)
time.sleep(60)
