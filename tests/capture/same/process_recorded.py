# options: --seconds 60
# arguments: functions
"""What a program does while it is recorded."""

import faulthandler
import sys
import time
import weakref


def switches():
    seen = set()
    for _ in range(20):
        seen.add(round(sys.getswitchinterval(), 4))
        time.sleep(0.05)
    print(seen)


def dumps_and_exits():
    faulthandler.dump_traceback_later(1, exit=True)
    time.sleep(3)


def refers():
    class Dead:
        pass

    def make():
        return weakref.ref(Dead())

    time.sleep(1)
    print(make()())


globals()[sys.argv[1]]()
