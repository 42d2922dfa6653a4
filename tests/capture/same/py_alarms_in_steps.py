# modes: run watch prove
"""Signals that raise, nest, wake files and other threads, in a loop of NumPy."""

import os
import select
import signal
import threading
import time

import numpy as np

heard = []


class Late(Exception):
    pass


def raises(number, frame):
    heard.append((signal.Signals(number).name, frame.f_code.co_name))
    raise Late


def nests(number, frame):
    heard.append("nest")
    if heard.count("nest") < 3:
        os.kill(os.getpid(), signal.SIGUSR1)


def train(weights):
    return np.tanh(weights @ weights.T / 64)


def forever(weights):
    while True:
        weights = train(weights)


weights = np.eye(64)
for _ in range(30):
    weights = train(weights)
signal.signal(signal.SIGALRM, raises)
for _ in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    try:
        forever(weights)
    except Late as error:
        names = []
        trace = error.__traceback__
        while trace:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        print(names[:2], names[-1], error.__context__)
before = signal.signal(signal.SIGUSR1, nests)
print(before, signal.getitimer(signal.ITIMER_REAL)[0])
os.kill(os.getpid(), signal.SIGUSR1)
weights = train(weights)
print(heard.count("nest"))
read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)
thread = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
thread.start()
while not select.select([read], [], [], 0)[0]:
    weights = train(weights)
print(os.read(read, 9), signal.set_wakeup_fd(-1) == write)
thread.join()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
weights = train(weights)
print(
    signal.sigpending(), signal.sigwait([signal.SIGUSR1]), signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
)
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    signal.raise_signal(signal.SIGINT)
    weights = train(weights)
except KeyboardInterrupt:
    print("interrupted", heard[:3])
begin = time.monotonic()
signal.signal(signal.SIGALRM, lambda *_: heard.append("alarm"))
signal.alarm(1)
time.sleep(1.2)
print(heard[-1], time.monotonic() - begin >= 1.2, np.isfinite(weights).all())
