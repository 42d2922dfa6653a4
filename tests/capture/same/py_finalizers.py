# modes: run api watch prove
import atexit
import gc
import sys
import weakref


class Node:
    def __init__(self, name):
        self.name = name
        self.others = []

    def __del__(self):
        print("del", self.name, "main" in sys.modules, Node is None)


nodes = weakref.WeakValueDictionary()
table = weakref.WeakKeyDictionary()
one, two = Node("one"), Node("two")
one.others.append(two)
two.others.append(one)
nodes["one"], table[two] = one, 2
finalizer = weakref.finalize(one, print, "finalize one")
reference = weakref.ref(two, lambda _: print("two is gone"))
print(weakref.getweakrefcount(one), weakref.getweakrefcount(two), sys.getrefcount(one), len(gc.get_referrers(two)))
del one, two
print(len(nodes), len(table), gc.collect() > 0, finalizer.alive, reference() is None)
kept = Node("kept")
cycle = Node("cycle")
cycle.others.append(cycle)
late = weakref.finalize(kept, print, "finalize kept")
late.atexit = True
atexit.register(print, "atexit")
resurrected = []


class Again:
    def __del__(self):
        resurrected.append(self)


Again()
print(len(resurrected), gc.is_finalized(resurrected[0]))
