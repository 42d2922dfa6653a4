# options: --seconds 1
import time

t = time.time()
time.sleep(2.5)
print(2.4 < time.time() - t < 3.5)
