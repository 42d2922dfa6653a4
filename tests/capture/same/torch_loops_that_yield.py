# modes: run watch prove
"""Training loops that are generators, are sent to, closed, teed and zipped, over loaders that live in between."""

import inspect
import itertools

import torch

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.arange(24.0).view(12, 2), batch_size=2, shuffle=True)
said = []


def epoch(batches):
    total = 0.0
    try:
        for at, batch in enumerate(batches):
            optimizer.zero_grad()
            loss = model(batch).pow(2).mean()
            loss.backward()
            optimizer.step()
            total += float(loss)
            rate = yield at, round(float(loss), 4)
            if rate:
                optimizer.param_groups[0]["lr"] = rate
        return total
    except GeneratorExit:
        said.append(("closed", at))
        raise
    except ValueError as error:
        said.append(("thrown", str(error)))
        yield "recovered"
    finally:
        said.append("finally")


def epochs():
    first = yield from epoch(loader)
    second = yield from epoch(itertools.islice(loader, 3))
    return round(first, 3), round(second, 3)


made = epochs()
got = [next(made), made.send(0.001)]
print(inspect.getgeneratorstate(made), sorted(inspect.getgeneratorlocals(made)), type(made.gi_yieldfrom).__name__)
while True:
    try:
        got.append(next(made))
    except StopIteration as end:
        print(end.value, got[:4], len(got))
        break
left, right = itertools.tee(epoch(loader))
print([a == b for a, b in zip(left, right, strict=True)])
open_one = epoch(loader)
next(open_one)
print(open_one.throw(ValueError("no")), sorted(open_one.gi_frame.f_locals))
del open_one
closing = epoch(zip(loader.dataset.split(2), strict=False))
try:
    next(closing)
except (TypeError, AttributeError) as error:
    said.append(type(error).__name__)
other = epoch(loader)
next(other)
other.close()
print(said, optimizer.param_groups[0]["lr"])


async def asynchronous():
    for at, _ in epoch(loader):
        yield at


async def consume():
    return [at async for at in asynchronous()]


coroutine = consume()
try:
    coroutine.send(None)
except StopIteration as end:
    print(end.value, inspect.getcoroutinestate(coroutine))
