# options: --seconds 1
# arguments: functions
"""What a program waits for, and what it has set, while a capture of one second ends."""

import cProfile
import logging
import os
import select
import signal
import sys
import threading
import time
import warnings

begun = time.time()


def waited(least):
    return time.time() - begun >= least


def pauses():
    signal.signal(signal.SIGUSR1, lambda *a: print("usr1"))
    threading.Timer(2.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    signal.pause()
    print(waited(2))


def polls():
    print(select.poll().poll(2000), waited(1.9))


def selects():
    print(select.select([], [], [], 2.5), waited(2.4))


def waits_for_a_signal():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    print(signal.sigwait([signal.SIGUSR1]))


def waits_for_a_while():
    print(signal.sigtimedwait([signal.SIGUSR1], 2), waited(1.9))


def sleeps():
    time.sleep(2.5)
    print(2.4 < time.time() - begun < 3.5)


def forks():
    time.sleep(1.5)
    if not os.fork():
        print("c", flush=True)
        time.sleep(1)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.wait()[1]))


def profiles():
    with cProfile.Profile() as profile:
        time.sleep(1.5)
    print(len(profile.getstats()))


def logs():
    logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(name)s %(message)s")
    time.sleep(1.5)
    logging.info("mine")


def traces():
    seen = []

    def trace(frame, event, given):
        seen.append(event)
        return trace

    def loop():
        for _ in range(5):
            time.sleep(0.4)

    sys.settrace(trace)
    loop()
    sys.settrace(None)
    print(len(seen))


def catches_warnings():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        time.sleep(1.5)
        warnings.warn("x")
        print([str(each.message) for each in caught])


def takes_warnings_for_errors():
    warnings.simplefilter("error")
    time.sleep(1.5)
    print("fine")


globals()[sys.argv[1]]()
