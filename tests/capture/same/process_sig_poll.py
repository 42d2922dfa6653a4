# options: --seconds .7
import select
import time

t = time.time()
print(select.poll().poll(2000), time.time() - t > 1.9)
