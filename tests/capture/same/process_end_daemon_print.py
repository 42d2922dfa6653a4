import threading
import time

threading.Thread(target=lambda: (time.sleep(5), print("never")), daemon=True).start()
print("m")
