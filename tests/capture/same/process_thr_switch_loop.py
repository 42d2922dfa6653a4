# options: --seconds 60
import sys
import time

v = set()
for _ in range(20):
    v.add(round(sys.getswitchinterval(), 4))
    time.sleep(0.05)
print(v)
