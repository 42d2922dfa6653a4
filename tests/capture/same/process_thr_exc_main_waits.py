import threading
import time

threading.Thread(target=lambda: (time.sleep(0.3), print("w"))).start()
raise ValueError("main")
