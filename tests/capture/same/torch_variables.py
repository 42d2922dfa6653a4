# modes: run api
"""Variables of functions, generators and comprehensions while they are looked at; what dies when."""

import gc
import inspect
import sys
import threading
import weakref

import torch
from _show import show

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def step(history, losses=None):
    loss = model(torch.ones(2, 4)).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if losses is not None:
        losses.append(loss)
    history.append(weakref.ref(loss))


def train(rate=0.1, **options):
    given = locals()
    history, losses = [], []
    later = 3

    def inner():
        return later, rate

    for i in range(30):
        step(history, losses)
        if i == 12:
            own = inspect.currentframe().f_locals
    return sorted(given), sorted(own), given["rate"], inner(), sum(each() is not None for each in history)


def generate():
    names = locals()
    history = []
    for i in range(20):
        step(history)
        yield i, sorted(names), sum(each() is not None for each in history)


class Body:
    found = locals()
    before = sorted(found)


def waits(event, result):
    marker = "still here"
    names = locals()
    event.wait()
    result.append((sorted(names), marker))


event, result = threading.Event(), []
other = threading.Thread(target=waits, args=[event, result])
other.start()
show("train", lambda: train(depth=4))
show("generate", lambda: list(generate())[-1])
show("class", lambda: (Body.before, sorted(Body.found)))
event.set()
other.join()
show("thread", lambda: result)
show("comprehension", lambda: [sorted(locals()) for _ in range(1)])
show("executed", lambda: (exec("a = 1; names = sorted(locals())", {}, space := {}), space["names"])[1])
show("traced", lambda: (sys.gettrace(), sys.getprofile(), gc.isenabled(), gc.get_threshold(), gc.callbacks))
