"""Threads as the system lists them, while nothing runs but the main one."""

import threading
import time

import psutil

process = psutil.Process()
print(process.status() in ("running", "sleeping"), len(process.cmdline()), threading.active_count())
print(process.children(), process.nice(), process.num_threads() >= 1)
time.sleep(0.2)
thread = threading.Thread(target=time.sleep, args=(0.1,))
thread.start()
print(threading.active_count(), [each.name for each in threading.enumerate()], thread.daemon)
thread.join()
print(threading._shutdown.__module__, threading.main_thread().ident == threading.get_ident())
