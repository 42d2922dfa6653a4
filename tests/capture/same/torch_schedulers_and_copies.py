# modes: run watch prove
"""Optimizers that are copied, pickled, derived and wrapped by schedulers, whose step says what it is."""

import copy
import inspect
import io
import pickle

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

calls = []


class Own(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        calls.append("own")
        loss = closure() if closure else None
        with torch.no_grad():
            for group in self.param_groups:
                for each in group["params"]:
                    each.sub_(group["lr"] * each.grad)
        return loss


class Derived(torch.optim.AdamW):
    def step(self, *args, **kwargs):
        calls.append("derived")
        return super().step(*args, **kwargs)


def make(kind):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    return model, kind(model.parameters(), lr=0.1)


def train(model, optimizer, count):
    for _ in range(count):
        optimizer.zero_grad()
        loss = model(torch.ones(1, 3)).pow(2).sum()
        loss.backward()
        optimizer.step()
    return round(float(loss), 6)


for kind in (torch.optim.SGD, Own, Derived, torch.optim.LBFGS):
    model, optimizer = make(kind)
    if kind is torch.optim.LBFGS:
        for _ in range(6):
            optimizer.step(
                lambda: (optimizer.zero_grad(), (loss := model(torch.ones(1, 3)).pow(2).sum()).backward(), loss)[2]
            )
        print("lbfgs", optimizer.state_dict()["state"][0]["func_evals"])
        continue
    schedule = SequentialLR(optimizer, [LinearLR(optimizer), CosineAnnealingLR(optimizer, 9)], [3])
    print(kind.__name__, train(model, optimizer, 8), [schedule.step() for _ in range(5)], schedule.get_last_lr())
    model, optimizer = copy.deepcopy((model, optimizer))
    print(train(model, optimizer, 3), sorted(vars(optimizer)), sorted(optimizer.defaults))
    buffer = io.BytesIO()
    torch.save({"o": optimizer.state_dict(), "m": model.state_dict()}, buffer)
    state = torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)
    other, again = make(kind)
    other.load_state_dict(state["m"])
    again.load_state_dict(state["o"])
    print(train(other, again, 3), train(model, optimizer, 3), len(pickle.dumps(again)) > 100)
    step = type(optimizer).step
    print(step.__qualname__, getattr(step, "hooked", None), hasattr(step, "__wrapped__"), inspect.signature(step))
    print(
        type(optimizer.step).__name__, optimizer.step.__func__ is step, inspect.getsource(step).splitlines()[0].strip()
    )
print(calls.count("own"), calls.count("derived"))
