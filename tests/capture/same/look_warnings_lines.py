"""Warnings name lines of the program, whatever function of a framework they pass through."""

import warnings

import torch

caught = []
warnings.showwarning = lambda message, category, filename, line, *_: caught.append(
    (filename.split("/")[-1], line, str(message)[:30])
)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
schedule.step()
for _ in range(12):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    schedule.step()
    warnings.warn("mine", stacklevel=1)
    torch.nn.functional.mse_loss(torch.ones(2), torch.ones(1))
print(caught)
print(schedule.optimizer.step.__name__, hasattr(optimizer.step, "_wrapped_by_lr_sched"), optimizer._opt_called)
