"""Children see the main module of the program."""

import multiprocessing
import sys


class Config:
    size = 3


def look(queue):
    main = sys.modules["__main__"]
    queue.put(
        (
            __name__,
            main.__name__,
            hasattr(main, "Config"),
            Config.__module__,
            len(sys.argv),
            sys.flags.hash_randomization,
        )
    )
    queue.put(sorted(name for name in vars(main) if not name.startswith("_")))


if __name__ == "__main__":
    for kind in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(kind)
        queue = context.SimpleQueue()
        child = context.Process(target=look, args=(queue,), name="one")
        child.start()
        print(kind, queue.get(), queue.get())
        child.join()
        print(child.exitcode, repr(child)[:30])
