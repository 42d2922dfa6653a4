# timeout: 300
"""What Dynamo makes of programs: graphs, breaks, recompilations, guards."""

import torch
import torch._dynamo as dynamo
from _show import show

torch.manual_seed(0)


def report(name):
    counters = dynamo.utils.counters
    breaks = sorted(key[:70] for key in counters["graph_break"])
    print(name, breaks, dict(counters["frames"]), dict(counters["stats"]), dict(counters["inline_call"]))
    print(name, [(m.co_name, m.recompile_reason) for m in dynamo.utils.get_compilation_metrics()])
    dynamo.reset()
    counters.clear()
    dynamo.utils.clear_compilation_metrics()


class Own(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for each in group["params"]:
                    each.sub_(each.grad * 0.1)


def train(kind, compiled_step):
    model = torch.nn.Linear(4, 1)
    optimizer = kind(model.parameters())
    step = torch.compile(optimizer.step, backend="eager") if compiled_step == "step" else optimizer.step

    def whole(x):
        loss = model(x).pow(2).mean()
        loss.backward()
        step()
        optimizer.zero_grad()
        return loss

    run = torch.compile(whole, backend="eager") if compiled_step == "whole" else whole
    for i in range(8):
        loss = run(torch.ones(4 + i // 4, 4))
    return loss.detach()


for kind in (lambda parameters: torch.optim.SGD(parameters, lr=0.1), torch.optim.Adam, Own):
    for compiled in ("step", "whole", "none"):
        show(compiled, lambda: train(kind, compiled))
        report(compiled)


@torch.compile(backend="eager", dynamic=False)
def shapes(x, n):
    return (x * n).sum()


for i in range(5):
    for n in (1, 2):
        shapes(torch.ones(2 + i), n)
report("shapes")


@torch.compile(backend="eager")
def differentiated(x):
    (grad,) = torch.autograd.grad((x**2).sum(), x)
    return torch.func.grad(lambda y: (y**3).sum())(x.detach()) + grad


for _ in range(4):
    show("grad", lambda: differentiated(torch.ones(3, requires_grad=True)))
report("grad")


@torch.compile(backend="eager")
def loads(loader):
    total = 0
    for (batch,) in loader:
        total = total + batch.sum()
    return total


for _ in range(3):
    show("loads", lambda: loads(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(6, 2)), 2)))
report("loads")
show("fullgraph", lambda: torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)(torch.ones(2)))
show("export", lambda: torch.export.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),)).graph_module.code.strip()[:200])
show("explain", lambda: dynamo.explain(shapes)(torch.ones(3), 2).graph_break_count)
report("rest")
