import sys
import threading

seen = []


def tr(f, e, a):
    if f.f_code.co_filename == __file__:
        seen.append((f.f_code.co_name, e))
    return tr


def w():
    a = 1
    for k in range(3):
        a += k
    return a


threading.settrace(tr)
t = threading.Thread(target=w)
t.start()
t.join()
threading.settrace(None)
sys.settrace(tr)
w()
sys.settrace(None)
print(seen)
