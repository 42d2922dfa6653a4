# modes: run api
"""What modes of a program see of a training loop, and references to its tensors."""

import collections
import gc
import weakref

import torch
from _show import depth, show
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(0)
functions, ops = collections.Counter(), collections.Counter()


class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        functions[getattr(function, "__name__", str(function))] += 1
        return function(*args, **(kwargs or {}))


class Ops(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        ops[str(function)] += 1
        return function(*args, **(kwargs or {}))


class Logged(torch.Tensor):
    count = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Logged.count += 1
        return super().__torch_function__(function, types, args, kwargs or {})


kept, dead = [], []
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
logged = torch.ones(3).as_subclass(Logged)
with Functions(), Ops():
    for i in range(40):
        batch = torch.randn(16, 4)
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(logged + i)
        reference = weakref.ref(loss, lambda _: dead.append(depth()))
        counts = [weakref.getweakrefcount(each) for each in (batch, *model.parameters())]
        del loss
        print(i, reference() is None, counts, end=" ")
print()
print(sorted(functions.items()), sorted(ops.items()), Logged.count, len(dead), set(dead))
for _ in range(10):
    one, other = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.ones(3))
    torch.utils.swap_tensors(one, other)
    optimizer.step()
torch.__future__.set_swap_module_params_on_conversion(True)
for i in range(10):
    model.to(torch.float64 if i % 2 else torch.float32)
    optimizer.step()
show("swapped", lambda: (one, next(model.parameters()).dtype))
show("tracked", lambda: sum(type(each) is Logged for each in gc.get_objects()))
