"""The stack in a hook of autograd, of a module and of an optimizer."""

import inspect

import torch

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = {}


def note(name):
    seen.setdefault(name, []).append([frame.function for frame in inspect.stack()[1:]])


model.register_forward_hook(lambda *_: note("forward"))
model.register_full_backward_hook(lambda *_: note("backward"))
optimizer.register_step_pre_hook(lambda *_: note("before"))
optimizer.register_step_post_hook(lambda *_: note("after"))
for _ in range(12):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
for name, stacks in seen.items():
    print(name, len(stacks), [len(each) for each in stacks], stacks[-1])
