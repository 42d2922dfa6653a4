# modes: run prove
"""TorchScript, FX and serialization of what calls the functions that are watched."""

import io

import torch
from _show import show


@torch.jit.script
def slope(x: torch.Tensor):
    y = (x * x).sum()
    with torch.autograd.profiler.record_function("inside"):
        return torch.autograd.grad([y], [x])[0]


@torch.jit.script
def backward(x: torch.Tensor):
    (x * x).sum().backward()
    return x.grad


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 1)

    def forward(self, x):
        return torch.relu(self.linear(x))


torch.manual_seed(0)
x = torch.ones(3, requires_grad=True)
for _ in range(8):
    show("slope", lambda: slope(x))
    x.grad = None
    show("backward", lambda: backward(x))
net = Net()
scripted, traced, symbolic = torch.jit.script(net), torch.jit.trace(net, x), torch.fx.symbolic_trace(net)
for made in (scripted, traced, symbolic):
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        made(x.detach()).sum().backward()
        optimizer.step()
    show("code", lambda: made.code)
    show("out", lambda: made(x.detach()))
file = io.BytesIO()
torch.jit.save(scripted, file)
file.seek(0)
show("loaded", lambda: torch.jit.load(file)(x.detach()))
show("graph", lambda: str(slope.graph).count("aten::grad"))
show("builtin", lambda: torch.jit._builtins._find_builtin(torch.autograd.grad))
