# options: --seconds 1
import os
import signal
import threading
import time

signal.signal(signal.SIGUSR1, lambda *a: print("usr1"))
threading.Timer(2.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
t = time.time()
signal.pause()
print(time.time() - t > 2)
