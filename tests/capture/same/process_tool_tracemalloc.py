import tracemalloc

tracemalloc.start()
x = [0] * 100000
print(tracemalloc.get_traced_memory()[0] > 700000, tracemalloc.get_traceback_limit())
tracemalloc.stop()
