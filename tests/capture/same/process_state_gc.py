import gc
import sys

print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), sys.getrecursionlimit(), gc.callbacks)
