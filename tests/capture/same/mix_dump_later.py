# modes: run watch prove api
"""A watchdog dumps the stacks of all threads, again and again, while a thread trains and the main thread waits."""

import faulthandler
import re
import tempfile
import threading
import time

import torch

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
go = threading.Event()


def train():
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    go.wait(60)


with tempfile.TemporaryFile("w+") as file:
    thread = threading.Thread(target=train)
    thread.start()
    time.sleep(1.5)
    faulthandler.dump_traceback_later(0.2, repeat=True, file=file)
    time.sleep(1.1)
    faulthandler.cancel_dump_traceback_later()
    file.seek(0)
    dumps = file.read().split("Timeout")[1:]
    go.set()
    thread.join()
print(len(dumps) >= 3)
shapes = {tuple(re.findall(r"in (\w+)", dump)) for dump in dumps}
print(sorted(shapes))
