# modes: run watch prove
"""What `sys.exc_info`, contexts, notes and tracebacks say inside of hooks, closures, loaders and generators."""

import sys
import traceback

import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []


def info(name):
    kind, error, trace = sys.exc_info()
    frames = [frame.name for frame in traceback.extract_tb(trace)]
    seen.append((name, kind and kind.__name__, frames, type(getattr(error, "__context__", None)).__name__))


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, at):
        if at == 5:
            raise KeyError("five")
        return torch.ones(3)


def closure():
    info("closure")
    optimizer.zero_grad()
    loss = model(torch.ones(1, 3)).sum()
    loss.backward()
    return loss


model.register_forward_hook(lambda *_: info("forward"))
model.register_full_backward_hook(lambda *_: info("backward"))
optimizer.register_step_pre_hook(lambda *_: info("before"))
optimizer.register_step_post_hook(lambda *_: info("after"))
for at in range(8):
    try:
        raise ValueError(at)
    except ValueError:
        optimizer.step(closure)
        info("handled")
    info("outside")
print(len(seen), *seen[:14], sep="\n")
seen.clear()
try:
    for batch in torch.utils.data.DataLoader(Data(), batch_size=2):
        model(batch).sum().backward()
        optimizer.step()
except KeyError as error:
    error.add_note("a note")
    print([frame.name for frame in traceback.extract_tb(error.__traceback__)], traceback.format_exception(error)[-2:])


def fails():
    try:
        optimizer.step(lambda: 1 / 0)
    finally:
        info("finally")


def loop():
    while True:
        try:
            yield
        except ZeroDivisionError as error:
            info("thrown")
            raise ExceptionGroup("group", [error, ValueError(1)]) from error


try:
    fails()
except ZeroDivisionError as error:
    made = loop()
    next(made)
    try:
        made.throw(error)
    except* ValueError as group:
        info("group")
        print(group.exceptions)
    except* ZeroDivisionError as group:
        print([frame.name for frame in traceback.extract_tb(group.exceptions[0].__traceback__)])
print(seen[-4:], sys.exc_info())


class Breaks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        raise LookupError("backward")


try:
    Breaks.apply(model(torch.ones(1, 3))).sum().backward()
except LookupError:
    print([line.split(",")[-1].strip() for line in traceback.format_exc().splitlines() if line.startswith("  File")])
