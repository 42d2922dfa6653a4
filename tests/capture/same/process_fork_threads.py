import os
import threading
import time

threading.Thread(target=time.sleep, args=(0.5,)).start()
if not os.fork():
    print(threading.active_count(), threading.enumerate()[0].name, flush=True)
    os._exit(0)
os.wait()
