"""Greenlets switch stacks inside of steps."""

import greenlet
import sys
import torch

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def depth():
    frame, n = sys._getframe(), 0
    while frame:
        frame, n = frame.f_back, n + 1
    return n


def train(who):
    for n in range(6):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).sum()
        main.switch(who, n)
        loss.backward()
        optimizer.step()
    raise ValueError(who)


main = greenlet.getcurrent()
lets = [greenlet.greenlet(train) for _ in range(3)]
seen = [let.switch(n) for n, let in enumerate(lets)]
while any(not let.dead for let in lets):
    for let in lets:
        if not let.dead:
            try:
                seen.append(let.switch(len(seen)))
            except ValueError as error:
                seen.append(repr(error))
print(seen, depth())
traced = []


def tracer(event, args):
    traced.append(event)


greenlet.settrace(tracer)


def small():
    main.switch(1)


let = greenlet.greenlet(small)
let.switch()
let.switch()
print(traced)
