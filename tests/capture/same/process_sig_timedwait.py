# options: --seconds .5
import signal
import time

t = time.time()
print(signal.sigtimedwait([signal.SIGUSR1], 2), time.time() - t > 1.9)
