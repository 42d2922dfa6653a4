"""A limit of memory that the program meets."""

import resource

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))
try:
    bytearray(8 << 30)
except MemoryError as error:
    print("MemoryError", error)
print(len(bytearray(1 << 20)))
