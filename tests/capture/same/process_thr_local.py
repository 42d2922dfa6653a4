import threading

l = threading.local()
l.x = 1
t = threading.Thread(target=lambda: print(hasattr(l, "x")))
t.start()
t.join()
