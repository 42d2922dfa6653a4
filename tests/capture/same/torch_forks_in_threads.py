# modes: run watch prove
"""Threads fork while the main thread trains; children say what they see, and end each in another way."""

import gc
import os
import signal
import sys
import threading
import time

import torch

torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
found = []


def child(at):
    seen = threading.active_count(), threading.current_thread() is threading.main_thread(), gc.get_freeze_count() > 0
    os.write(1, f"child {at} {seen} {signal.getsignal(signal.SIGTERM)!s}\n".encode())
    if at == 0:
        os._exit(3)
    if at == 1:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(9)
    if at == 2:
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-c", "import sys; print('exec', len(sys.argv)); sys.exit(5)"])
    os.abort() if at == 3 else os._exit(0)


def forks():
    for at in range(4):
        sys.stdout.flush()
        gc.freeze()
        number = os.fork()
        if number == 0:
            try:
                child(at)
            finally:
                os._exit(99)
        found.append(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))
        gc.unfreeze()


import faulthandler
import resource

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
faulthandler.disable()
thread = threading.Thread(target=forks)
thread.start()
steps = 0
while thread.is_alive() or steps < 10:
    optimizer.zero_grad()
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    steps += 1
    time.sleep(0.002)
print(found, threading.active_count(), signal.getsignal(signal.SIGCHLD))
