import multiprocessing as mp

print(mp.get_start_method(allow_none=True), mp.get_all_start_methods())
mp.set_start_method("spawn")
print(mp.get_start_method())
