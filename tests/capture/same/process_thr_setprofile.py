import sys
import threading

seen = []


def pr(f, e, a):
    if f.f_code.co_filename == __file__:
        seen.append((f.f_code.co_name, e))


def w():
    return len([1])


sys.setprofile(pr)
w()
sys.setprofile(None)
print(seen, sys.getprofile())
seen.clear()
threading.setprofile(pr)
t = threading.Thread(target=w)
t.start()
t.join()
threading.setprofile(None)
print(seen)
