# modes: run watch prove api
"""Starts itself anew with Python's development mode and warnings as errors; then once more, isolated."""

import os
import sys
import warnings

import torch

flags = sys.flags.dev_mode, sys.flags.isolated, sys.warnoptions, len(sys.argv)
print(flags, flush=True)
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
if not sys.flags.dev_mode:
    os.execv(sys.executable, [sys.executable, "-X", "dev", "-W", "error", __file__, "again"])
if not sys.flags.isolated:
    os.execv(sys.executable, [sys.executable, "-I", "-X", "dev", "-W", "error::ResourceWarning", __file__, "a", "b"])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    open(__file__)
print([each.category.__name__ for each in caught], sys.argv[1:])
