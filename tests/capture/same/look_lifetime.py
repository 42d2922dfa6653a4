"""Nothing lives longer than in plain Python: batches, losses, models."""

import gc
import weakref

import torch

gc.disable()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader([torch.ones(2)] * 12)
alive = []
for batch in loader:
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
    alive.append((weakref.ref(batch), weakref.ref(loss)))
    del loss, batch
    print([sum(each() is not None for each in pair) for pair in alive[-2:]], end=" ")
ends = [weakref.ref(model), weakref.ref(optimizer), weakref.ref(loader)]
del model, optimizer, loader
print([each() is None for each in ends])
