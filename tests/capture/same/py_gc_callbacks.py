# modes: run api watch prove
import gc
import sys

phases = []
gc.callbacks.append(lambda phase, info: phases.append((phase, info["generation"])))
gc.disable()
for generation in (0, 1, 2):
    gc.collect(generation)
print(phases, len(gc.callbacks))
gc.callbacks.clear()
gc.collect()
gc.freeze()
print(gc.get_freeze_count() > 0, gc.isenabled(), gc.get_debug())
gc.unfreeze()
print(gc.get_freeze_count(), gc.get_threshold())
gc.set_debug(gc.DEBUG_SAVEALL)


class Loop:
    pass


loop = Loop()
loop.self = loop
del loop
found = gc.collect()
print(sum(isinstance(each, Loop) for each in gc.garbage), found >= 1)
gc.set_debug(0)
gc.garbage.clear()
here = Loop()
print([type(each).__name__ for each in gc.get_referrers(here)], sys.getrefcount(here), gc.is_tracked(here))
gc.set_threshold(1, 1, 1)
gc.enable()
print(sum(len([i, i]) for i in range(1000)), gc.get_threshold())
