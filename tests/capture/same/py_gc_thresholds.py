"""Collections of garbage come when the program's own objects ask for them; nothing of ours is in their counts for long."""

import gc
import sys


class Node:
    def __init__(self):
        self.me = self


def step(n):
    return [Node() for _ in range(n)]


collected = []
gc.callbacks.append(lambda phase, info: collected.append((phase, info["generation"])) if phase == "stop" else None)
gc.set_threshold(10_000, 10, 10)
gc.collect()
collected.clear()
for n in range(10):
    step(100)
print(len(collected), gc.get_threshold(), gc.isenabled(), gc.get_debug())
gc.disable()
for n in range(20):
    step(2000)
print(len(collected), gc.isenabled())
gc.enable()
before = gc.collect()
print(before >= 40_000, gc.garbage, gc.callbacks[0] is gc.callbacks[-1], len(gc.callbacks))
gc.set_debug(gc.DEBUG_SAVEALL)
step(3)
gc.collect()
print(sum(type(each) is Node for each in gc.garbage))
gc.set_debug(0)
gc.garbage.clear()
print(sys.getrefcount(Node) - len([each for each in gc.get_objects() if type(each) is Node]) > 0)
gc.freeze()
print(gc.get_freeze_count() > 0, gc.get_referents(Node.__init__) != [])
gc.unfreeze()
print(gc.get_freeze_count())
