import atexit
import threading


def f():
    try:
        t = threading.Thread(target=print, args=("t",))
        t.start()
        t.join()
    except RuntimeError as e:
        print(e)


atexit.register(f)
