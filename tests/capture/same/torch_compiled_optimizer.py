# modes: run watch prove
# timeout: 300
"""Steps of optimizers within compiled functions, compiled autograd's hooks, and captured graphs of both passes."""

import torch
from torch._dynamo.testing import CompileCounterWithBackend

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1), momentum=0.9)
counter = CompileCounterWithBackend("aot_eager")
hooked = []
optimizer.register_step_post_hook(lambda *_: hooked.append("post"))
model.weight.register_hook(lambda gradient: hooked.append("grad"))


@torch.compile(backend=counter)
def forward(x):
    return model(x).pow(2).mean()


compiled_step = torch.compile(optimizer.step, backend=counter)
for at in range(8):
    optimizer.zero_grad()
    loss = forward(torch.ones(2, 4))
    loss.backward()
    compiled_step()
print(round(loss.item(), 6), counter.frame_count, counter.op_count, hooked)


@torch.compile(backend="eager", fullgraph=True)
def whole(x, gradients):
    loss = model(x).sum()
    return torch.autograd.grad(loss, list(model.parameters())) if gradients else loss


for _ in range(3):
    print(whole(torch.ones(1, 4), False).shape)
try:
    print([each.shape for each in whole(torch.ones(1, 4), True)])
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0][:80])
explained = torch._dynamo.explain(optimizer.step)()
print(explained.graph_count, explained.graph_break_count, explained.op_count)
print(len(torch._dynamo.utils.counters["graph_break"]), torch._dynamo.utils.counters["frames"])


@torch._dynamo.disable
def outside(x):
    hooked.append("outside")
    return x + 1


@torch.compile(backend=counter)
def mixed(x):
    y = outside(x * 2)
    torch._dynamo.graph_break()
    return torch.utils.checkpoint.checkpoint(torch.sin, y, use_reentrant=False)


before = counter.frame_count
for _ in range(5):
    mixed(torch.ones(3))
print(counter.frame_count - before, hooked.count("outside"))
