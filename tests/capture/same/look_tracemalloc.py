"""Memory that tracemalloc finds of the program's own lines."""

import tracemalloc

import torch

tracemalloc.start(5)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range(12):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    kept.append(bytearray(1000))
mine = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
lines = {each.traceback[0].lineno: each.count for each in mine.statistics("lineno")}
print(lines.get(13), tracemalloc.get_traceback_limit(), tracemalloc.is_tracing())
