# options: --seconds 1
import cProfile
import time

with cProfile.Profile() as q:
    time.sleep(1.5)
print(len(q.getstats()))
