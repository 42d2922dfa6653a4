"""A profiler of the program that samples by processor time, and is not stopped."""

import signal
import time

ticks = []
signal.signal(signal.SIGPROF, lambda *_: ticks.append(1))
signal.setitimer(signal.ITIMER_PROF, 0.02, 0.02)
until = time.process_time() + 0.3
while time.process_time() < until:
    pass
print(len(ticks) > 2)
