import signal
import time

n = []
signal.signal(signal.SIGALRM, lambda *a: n.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
t = time.time()
while time.time() - t < 1.05:
    time.sleep(0.01)
signal.setitimer(signal.ITIMER_REAL, 0)
print(8 <= len(n) <= 11)
