import threading

threading.excepthook = lambda a: print("hook", a.exc_type.__name__, a.thread.name)
t = threading.Thread(target=lambda: 1 / 0, name="T")
t.start()
t.join()
