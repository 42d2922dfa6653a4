import os
import signal
import time

os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(1)
