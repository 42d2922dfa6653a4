"""State of training is copied, pickled, shelved and saved while steps go on; object graphs stay the program's."""

import copy
import copyreg
import gc
import io
import pickle
import shelve
import sys
import tempfile
import torch
import collections

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters())
loader = torch.utils.data.DataLoader(range(6), batch_size=2)
sched = torch.optim.lr_scheduler.StepLR(optimizer, 2)


def step():
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    sched.step()


folder = tempfile.mkdtemp()
sizes = []
for n in range(8):
    step()
    sizes.append(
        (
            len(pickle.dumps(copy.deepcopy((model, optimizer)))),
            len(pickle.dumps(loader)),
            len(pickle.dumps(sched.state_dict())),
        )
    )
    with shelve.open(folder + "/state") as shelf:
        shelf[str(n)] = optimizer.state_dict()
    buffer = io.BytesIO()
    torch.save({"m": model.state_dict(), "o": optimizer.state_dict(), "whole": optimizer}, buffer)
    sizes.append(buffer.tell())
print(collections.Counter(sizes).most_common(4))
print(
    len(gc.get_referrers(optimizer)),
    len(gc.get_referrers(model)),
    sys.getrefcount(optimizer),
    sys.getrefcount(model),
    sys.getrefcount(loader),
)
print(sorted(k for k in vars(type(optimizer)) if not k.startswith("__"))[:9], list(vars(optimizer)))
print(sum(isinstance(each, torch.Tensor) for each in gc.get_objects()))
