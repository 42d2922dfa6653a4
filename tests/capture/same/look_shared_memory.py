"""Shared memory, its tracker, and what is left."""

import multiprocessing
from multiprocessing import resource_tracker, shared_memory


def fill(name):
    block = shared_memory.SharedMemory(name)
    block.buf[0] = 7
    block.close()


if __name__ == "__main__":
    block = shared_memory.SharedMemory(create=True, size=16)
    for kind in ("spawn", "fork", "forkserver"):
        child = multiprocessing.get_context(kind).Process(target=fill, args=(block.name,))
        child.start()
        child.join()
        print(kind, child.exitcode, block.buf[0])
    block.close()
    block.unlink()
    print(resource_tracker._resource_tracker._pid is not None, multiprocessing.active_children())
