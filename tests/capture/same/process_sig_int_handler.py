import os
import signal
import time

signal.signal(signal.SIGINT, lambda *a: print("int"))
os.kill(os.getpid(), signal.SIGINT)
time.sleep(0.2)
print("e")
