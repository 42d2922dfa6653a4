import threading
import time

for i in range(3):
    threading.Thread(target=time.sleep, args=(0.1,)).start()
for t in threading.enumerate():
    if t is not threading.main_thread():
        t.join()
print("ended", threading.active_count())
