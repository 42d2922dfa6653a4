import os
import signal
import threading
import time

signal.signal(signal.SIGUSR1, lambda *a: (_ for _ in ()).throw(OSError("intr")))
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
try:
    time.sleep(3)
except OSError as e:
    print(e)
