# timeout: 60
"""A program that computes reads the interpreter's switch interval, sets another one for a while, and sets back what it read."""

import sys
import threading
import time
from sys import getswitchinterval


def step(n):
    total = 0
    until = time.perf_counter() + 0.05
    while time.perf_counter() < until:
        total += n
    return total


seen = set()
for n in range(12):
    step(n)
    before = sys.getswitchinterval()
    seen.add(before)
    sys.setswitchinterval(0.001)
    step(1)
    seen.add(sys.getswitchinterval())
    sys.setswitchinterval(before)
    step(1)
    seen.add(sys.getswitchinterval())
thread = threading.Thread(target=lambda: seen.add(sys.getswitchinterval()))
thread.start()
thread.join()
print(sorted(seen), sys.getswitchinterval.__name__, sys.getswitchinterval.__module__, repr(sys.getswitchinterval))
print(type(sys.getswitchinterval) is type(len), sys.getswitchinterval.__self__ is sys, sys.getswitchinterval.__doc__)
for wrong in ((1,), (0,)):
    try:
        sys.getswitchinterval(*wrong)
    except TypeError as error:
        print(error)
time.sleep(4)
print(sys.getswitchinterval(), getswitchinterval())
