import gc

gc.collect()
print(gc.garbage, gc.isenabled())
