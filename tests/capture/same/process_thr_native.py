import _thread
import time

o = []
_thread.start_new_thread(lambda: o.append(1), ())
time.sleep(0.3)
print(o, _thread._count() if False else "")
