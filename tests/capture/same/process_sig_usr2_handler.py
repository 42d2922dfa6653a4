import os
import signal
import time

signal.signal(signal.SIGUSR2, lambda *a: print("mine"))
os.kill(os.getpid(), signal.SIGUSR2)
time.sleep(0.1)
print("e")
