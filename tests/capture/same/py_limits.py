# arguments: nofile core stack data as_ nice cpu
"""The system's limits that a program sets for itself while it runs."""

import os
import resource
import sys
import threading

way = sys.argv[1]


def step(n):
    return sum(i * n for i in range(1000))


def deep(n):
    return n if n == 0 else deep(n - 1) + 1


for n in range(3):
    step(n)
if way == "nofile":
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        print(error.errno, len(held) > 20)
    for n in range(8):
        step(n)
    for each in held:
        os.close(each)
    print(len(open("/proc/self/cmdline").read()) > 0)
elif way == "core":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(resource.getrlimit(resource.RLIMIT_CORE))
    for n in range(8):
        step(n)
    os.abort()
elif way == "stack":
    threading.stack_size(64 * 1024 * 1024)
    sys.setrecursionlimit(20_000)
    thread = threading.Thread(target=lambda: print(deep(15_000)))
    thread.start()
    thread.join()
    print(threading.stack_size(), sys.getrecursionlimit())
elif way == "data":
    resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
    try:
        bytearray(4 << 30)
    except MemoryError as error:
        print("MemoryError", error)
    for n in range(8):
        step(n)
elif way == "as_":
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    try:
        bytearray(16 << 30)
    except MemoryError as error:
        print("MemoryError", error)
    for n in range(8):
        step(n)
elif way == "nice":
    print(os.nice(3), os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0) == set(range(os.cpu_count())))
    os.sched_setaffinity(0, {0})
    for n in range(8):
        step(n)
    print(os.sched_getaffinity(0), os.sched_getscheduler(0))
elif way == "cpu":
    resource.setrlimit(resource.RLIMIT_CPU, (3600, 3600))
    for n in range(8):
        step(n)
    print(resource.getrlimit(resource.RLIMIT_CPU), resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw)
