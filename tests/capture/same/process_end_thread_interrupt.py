import _thread
import threading
import time

threading.Timer(0.3, _thread.interrupt_main).start()
try:
    time.sleep(5)
except KeyboardInterrupt:
    print("int")
