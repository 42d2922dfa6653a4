# options: --seconds 5
import time
import weakref


class A:
    pass


def f():
    a = A()
    return weakref.ref(a)


time.sleep(1)
r = f()
print(r())
