import os
import threading

t = threading.Thread(target=os._exit, args=(3,))
t.start()
t.join()
print("m")
