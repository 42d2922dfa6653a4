"""Random numbers of three libraries, during a training."""

import random

import numpy
import torch

random.seed(1)
numpy.random.seed(1)
torch.manual_seed(1)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.arange(12.0).view(6, 2))
for (batch,) in torch.utils.data.DataLoader(data, shuffle=True, batch_size=1):
    model(torch.nn.functional.dropout(batch)).sum().backward()
    optimizer.step()
    print(round(random.random(), 6), round(float(numpy.random.rand()), 6), batch.tolist())
print(torch.get_rng_state().sum().item(), torch.initial_seed(), random.getstate()[2])
