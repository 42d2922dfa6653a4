"""A dump of all threads."""

import faulthandler
import sys
import threading

go, ready = threading.Event(), threading.Event()


def wait():
    ready.set()
    go.wait()


thread = threading.Thread(target=wait)
thread.start()
ready.wait()
with open("dump.txt", "w+") as file:
    faulthandler.dump_traceback(file, all_threads=True)
    file.seek(0)
    lines = file.read().splitlines()
go.set()
thread.join()
print(sum("hread" in line and "most recent" in line for line in lines), len(sys._current_frames()))
