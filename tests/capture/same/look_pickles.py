"""Functions, classes and models as pickles of four libraries."""

import io
import pickle

import cloudpickle
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)


def loss(out):
    return out.sum()


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters())
loader = torch.utils.data.DataLoader([torch.ones(2)] * 4, batch_size=2)
for _ in range(6):
    for batch in loader:
        loss(net(batch)).backward()
        optimizer.step()
for what in (net, loss, Net, optimizer, loader, torch.optim.Adam.step, torch.autograd.grad, torch.optim.SGD):
    for name, module in (("pickle", pickle), ("cloudpickle", cloudpickle)):
        try:
            data = module.dumps(what)
            print(name, type(what).__name__, len(data), type(pickle.loads(data)).__name__)
        except Exception as error:
            print(name, type(what).__name__, type(error).__name__, str(error)[:60])
buffer = io.BytesIO()
torch.save(net.state_dict(), buffer)
print(len(buffer.getvalue()))
