"""What an optimizer's `step` is, after a scheduler and a scaler have taken it."""

import functools
import inspect
import types

import torch

model = torch.nn.Linear(2, 1)


class Own(torch.optim.SGD):
    def step(self, closure=None):
        self.count = getattr(self, "count", 0) + 1
        return super().step(closure)


for kind in (torch.optim.SGD, Own, torch.optim.AdamW, torch.optim.LBFGS):
    optimizer = kind(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    for _ in range(8):
        optimizer.step(closure)
        scheduler.step()
    step = optimizer.step
    print(kind.__name__, type(step).__name__, isinstance(step, types.MethodType), inspect.signature(kind.step))
    print(kind.step.__qualname__, kind.step.__module__, hasattr(kind.step, "hooked"), functools.WRAPPER_ASSIGNMENTS[0])
    print(getattr(optimizer, "count", None), sorted(vars(optimizer))[:6], kind.step.__code__.co_name)
