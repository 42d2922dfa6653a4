# modes: run watch prove
"""tracemalloc's snapshots of the program's own lines, and the reference counts of what it holds."""

import gc
import sys
import tracemalloc

import torch

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.Adam(model.parameters())
kept = []


def train(count):
    for at in range(count):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 8)).sum()
        loss.backward()
        optimizer.step()
        kept.append([at] * 1000)


train(12)
kept.clear()
gc.collect()
gc.disable()
tracemalloc.start(5)
before = tracemalloc.take_snapshot()
train(6)
after = tracemalloc.take_snapshot()
tracemalloc.stop()
gc.enable()
own = tracemalloc.Filter(True, __file__)
found = after.filter_traces([own]).compare_to(before.filter_traces([own]), "lineno")
print(
    [
        (each.traceback[0].lineno, each.size_diff // 8000)
        for each in sorted(found, key=lambda each: each.traceback[0].lineno)
        if each.size_diff > 8000
    ]
)
print(sys.getrefcount(kept), sys.getrefcount(model), sys.getrefcount(train), len(gc.get_referrers(kept)))
print(
    all(sys.getrefcount(each) == 3 for each in kept),
    tracemalloc.is_tracing(),
    tracemalloc.get_tracemalloc_memory() >= 0,
)
