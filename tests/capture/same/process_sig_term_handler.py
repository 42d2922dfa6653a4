import os
import signal
import sys
import time

signal.signal(signal.SIGTERM, lambda *a: sys.exit(12))
time.sleep(0.3)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(3)
