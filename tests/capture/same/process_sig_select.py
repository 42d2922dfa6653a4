# options: --seconds 1
import select
import time

t = time.time()
print(select.select([], [], [], 2.5), time.time() - t > 2.4)
