# arguments: nested masked altstack child interrupts restored stops chained
"""Handlers of signals that the program sets, nests, masks, chains and restores around its steps."""

import os
import signal
import subprocess
import sys
import threading
import time

seen = []


def step(n):
    return sum(i * i for i in range(n * 100))


def handler(number, frame):
    seen.append((signal.Signals(number).name, frame.f_code.co_name if frame else None))


def nested():
    def outer(number, frame):
        seen.append("in")
        signal.raise_signal(signal.SIGUSR2)
        seen.append("out")

    signal.signal(signal.SIGUSR1, outer)
    signal.signal(signal.SIGUSR2, handler)
    for n in range(6):
        step(n)
        os.kill(os.getpid(), signal.SIGUSR1)


def masked():
    for each in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
        signal.signal(each, handler)
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM})
    for n in range(6):
        step(n)
        for each in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
            os.kill(os.getpid(), each)
    seen.append(sorted(each.name for each in signal.sigpending()))
    seen.append(sorted(each.name for each in old))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM})


def altstack():
    for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGUSR2}:
        seen.append((int(each), str(signal.getsignal(each))[:60].split(" at ")[0]))


def child():
    signal.signal(signal.SIGCHLD, handler)
    for n in range(4):
        step(n)
        subprocess.run(["true"], check=True)
    time.sleep(0.05)
    seen[:] = [len(seen), {each[0] for each in seen}]


def interrupts():
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    begun = time.monotonic()
    time.sleep(0.3)
    seen.append(time.monotonic() - begun >= 0.3)
    reader, writer = os.pipe()
    threading.Timer(0.2, os.write, (writer, b"x")).start()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    seen.append(os.read(reader, 1))
    for n in range(5):
        step(n)


def restored():
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGUSR1, signal.SIGALRM, signal.SIGHUP)}
    for each in before:
        signal.signal(each, handler)
    for n in range(5):
        step(n)
    for each, old in before.items():
        seen.append(signal.signal(each, old) is handler)
    seen.append([signal.getsignal(each) is old for each, old in before.items()])
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    except KeyboardInterrupt:
        seen.append("interrupt")


def stops():
    pid = os.fork()
    if pid == 0:
        for n in range(5):
            step(n)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(7)
    _, status = os.waitpid(pid, os.WUNTRACED)
    seen.append((os.WIFSTOPPED(status), os.WSTOPSIG(status)))
    os.kill(pid, signal.SIGCONT)
    seen.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def chained():
    def first(number, frame):
        seen.append("first")

    signal.signal(signal.SIGTERM, first)
    old = signal.getsignal(signal.SIGTERM)

    def second(number, frame):
        seen.append("second")
        old(number, frame)

    signal.signal(signal.SIGTERM, second)
    for n in range(5):
        step(n)
    os.kill(os.getpid(), signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    step(3)
    print(seen, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


globals()[sys.argv[1]]()
print(seen)
