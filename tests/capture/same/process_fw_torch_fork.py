import os

import torch

m = torch.nn.Linear(4, 4)
o = torch.optim.SGD(m.parameters(), 0.1)
for i in range(30):
    o.zero_grad()
    l = m(torch.ones(2, 4)).pow(2).sum()
    l.backward()
    o.step()
    if i == 4 and not os.fork():
        os._exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
