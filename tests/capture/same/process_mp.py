# arguments: spawn fork forkserver
# timeout: 300
"""Children by multiprocessing, by each start method: what they see, send and raise, and how they end."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

context = multiprocessing.get_context(sys.argv[1])


class Own(Exception):
    pass


class Value:
    value = 3


def finish_later():
    from multiprocessing import util

    util.Finalize(None, lambda: print("fin", flush=True), exitpriority=1)


def tell(queue):
    threads = [each.name for each in threading.enumerate() if "Queue" not in each.name]
    queue.put((sorted(os.environ), sys.argv, sys.path[0] != "", __name__, sys.modules["__main__"].__name__, threads))


def send(pipe):
    pipe.send(Value())
    pipe.close()


def increase(shared):
    shared.value += 1
    print("c", shared.value, multiprocessing.current_process().name, flush=True)


def fail(x):
    if x == 2:
        raise Own(x)
    return x


def end():
    os._exit(8)


def interrupt():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("kb", flush=True)


def ended(target, *given, after=lambda child: None, **more):
    child = context.Process(target=target, args=given, **more)
    child.start()
    after(child)
    child.join()
    print(target.__name__, child.exitcode, child.daemon, flush=True)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    memory = shared_memory.SharedMemory(create=True, size=10)
    memory.buf[0] = 7
    memory.close()
    memory.unlink()
    ended(finish_later)
    ended(sys.exit, 5)
    ended(end)
    ended(fail, 2)
    ended(interrupt)
    ended(increase, context.Value("i", 1))
    ended(time.sleep, 0.5, after=lambda child: print(len(multiprocessing.active_children())))
    ended(time.sleep, 60, after=lambda child: (time.sleep(1), child.terminate()))
    print(multiprocessing.active_children())
    for queue in (context.Queue(), context.SimpleQueue()):
        ended(tell, queue, after=lambda child: print(queue.get()))
    here, there = context.Pipe()
    ended(send, there, after=lambda child: print(type(here).__name__, here.recv().value))
    with context.Manager() as manager:
        kept = manager.dict(a=1)
        print(dict(kept))
    with context.Pool(1) as pool:
        try:
            print(list(pool.imap(fail, range(4))))
        except Own as error:
            print("Own", error)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(list(pool.map(abs, range(4))))
        try:
            pool.submit(fail, 2).result()
        except Own as error:
            print("Own", error.args)
    context.Process(target=time.sleep, args=(60,), daemon=True).start()
    print("end")
