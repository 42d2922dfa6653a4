import sys
import threading

t = threading.Thread(target=sys.exit, args=(3,))
t.start()
t.join()
print("m")
