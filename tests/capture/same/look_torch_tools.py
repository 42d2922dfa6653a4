"""TorchScript, fx, export, compile: graphs and their code."""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 2)

    def forward(self, x):
        return torch.relu(self.a(x)).sum()


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(8):
    net(torch.ones(1, 2)).backward()
    optimizer.step()
print(torch.jit.script(net).code)
print(torch.fx.symbolic_trace(net).code)
print(torch.export.export(net, (torch.ones(1, 2),)).graph)
compiled = torch.compile(net, backend="eager", fullgraph=True)
for _ in range(4):
    compiled(torch.ones(1, 2)).backward()
    optimizer.step()
print(torch._dynamo.explain(net)(torch.ones(1, 2)).graph_break_count)
