"""A timer that is still running when the program ends."""

import signal
import time

ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
while len(ticks) < 3:
    time.sleep(0.01)
print(len(ticks) >= 3, signal.getitimer(signal.ITIMER_REAL)[1])
