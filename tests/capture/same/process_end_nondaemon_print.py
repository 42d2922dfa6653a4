import threading
import time

threading.Thread(target=lambda: (time.sleep(0.5), print("after"))).start()
print("m")
