"""A frozen clock while a program trains."""

import time
import datetime
from freezegun import freeze_time
import torch

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())


def step():
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).sum()
    loss.backward()
    optimizer.step()
    return loss


for n in range(2):
    step()
with freeze_time("2012-01-14 03:21:34", tick=False) as frozen:
    for n in range(8):
        step()
        frozen.tick(10)
    print(datetime.datetime.now(), time.time(), time.monotonic() > 0, datetime.date.today())
for n in range(3):
    step()
print(datetime.datetime.now().year > 2020)
with freeze_time("2030-01-01", as_kwarg="frozen"):
    print(time.gmtime().tm_year)
