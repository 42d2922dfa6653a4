import sys


class A:
    pass


a = A()
print(sys.getrefcount(a))
import gc

print(len(gc.get_referrers(a)))
