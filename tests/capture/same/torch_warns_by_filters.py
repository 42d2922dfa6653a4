# modes: run watch prove
"""Filters of warnings by module, line and category meet a training loop's own warnings."""

import sys
import threading
import types
import warnings

import torch

library = types.ModuleType("library")
exec(
    compile(
        "import warnings\ndef old(level):\n    warnings.warn('old', DeprecationWarning, stacklevel=level)\n",
        "library.py",
        "exec",
    ),
    vars(library),
)
told = []
warnings.showwarning = lambda message, kind, file, line, *rest: told.append(
    (str(message), kind.__name__, file.rpartition("/")[2], line)
)
warnings.filterwarnings("error", category=RuntimeWarning, module="__main__")
warnings.filterwarnings("always", category=DeprecationWarning, module="library")
warnings.filterwarnings("once", message="fish")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
schedule.step()
for at in range(12):
    loss = model(torch.ones(2, 4)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    library.old(1)
    library.old(2)
    warnings.warn("fish", UserWarning)
    try:
        warnings.warn(f"step {at}", RuntimeWarning)
    except RuntimeWarning as error:
        told.append(repr(error))


def other():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library.old(2)
        torch.tensor(3.0, requires_grad=True).pow(2).backward()
        (torch.ones(2) * model.weight.sum()).sum().grad
    told.append([str(each.message).splitlines()[0][:60] for each in caught])


thread = threading.Thread(target=other)
thread.start()
thread.join()
print(len(told), told[:12], told[-3:])
print(
    sorted(map(str, globals().get("__warningregistry__", {}))),
    sorted(map(str, vars(library).get("__warningregistry__", {}))),
)
print([(each[0], each[2].__name__) for each in warnings.filters[:3]], sys.warnoptions)
print(
    [
        name
        for name, module in sorted(sys.modules.items())
        if name.startswith("stepscope") and "__warningregistry__" in vars(module)
    ]
)
