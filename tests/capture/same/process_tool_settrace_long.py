# options: --seconds .3
import sys
import time

n = [0]


def tr(f, e, a):
    n[0] += 1
    return tr


def g():
    for i in range(5):
        time.sleep(0.2)


sys.settrace(tr)
g()
sys.settrace(None)
print(n)
