# arguments: functions
"""Threads, pools and event loops, and what is set for them."""

import _thread
import asyncio
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor


def run(target, **more):
    thread = threading.Thread(target=target, **more)
    thread.start()
    thread.join()


def loop():
    async def main():
        await asyncio.sleep(0.1)
        return await asyncio.to_thread(lambda: 4)

    print(asyncio.run(main()))


def loop_with_a_signal():
    async def main():
        loop = asyncio.get_running_loop()
        got = loop.create_future()
        loop.add_signal_handler(signal.SIGUSR1, lambda: got.set_result("got"))
        loop.call_later(0.2, os.kill, os.getpid(), signal.SIGUSR1)
        print(await got)

    asyncio.run(main())


def loop_with_a_process():
    async def main():
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(3)", stdout=-1)
        print(await process.communicate(), process.returncode)

    asyncio.run(main())


def barrier():
    barrier, passed = threading.Barrier(3), []
    threads = [threading.Thread(target=lambda i=i: (barrier.wait(), passed.append(i))) for i in range(3)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    print(sorted(passed))


def hook():
    threading.excepthook = lambda a: print("hook", a.exc_type.__name__, a.thread.name)
    run(lambda: 1 / 0, name="T")


def joins_all():
    time.sleep(0.3)
    print(len(threading.enumerate()))
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(0.1,)).start()
    for each in threading.enumerate():
        if each is not threading.main_thread():
            each.join()
    print("ended", threading.active_count())


def own_values():
    own = threading.local()
    own.x = 1
    run(lambda: print(hasattr(own, "x")))


def without_objects():
    seen = []
    _thread.start_new_thread(lambda: seen.append(1), ())
    time.sleep(0.3)
    print(seen)


def pool():
    with ThreadPoolExecutor(4) as pool:
        print(sorted(pool.map(lambda x: x * x, range(10))))
    print(ThreadPoolExecutor(2).submit(lambda: 5).result())


def stack_size():
    print(threading.stack_size())
    threading.stack_size(262144)
    run(print, args=("x",))


def work(n=3):
    a = 1
    for k in range(n):
        a += len([k])
    return a


def watched(set_here, set_for_threads):
    seen = []

    def watch(frame, event, given):
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "work":
            seen.append(event)
        return watch

    set_here(watch)
    work()
    set_here(None)
    print(seen, sys.getprofile(), sys.gettrace())
    seen.clear()
    set_for_threads(watch)
    run(work)
    set_for_threads(None)
    print(seen)


def profiled():
    watched(sys.setprofile, threading.setprofile)


def traced():
    watched(sys.settrace, threading.settrace)


globals()[sys.argv[1]]()
