# modes: run watch
# timeout: 400
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        y = torch.relu(self.a(x))
        return self.b(y).sum(-1)


class Counting(fx.Tracer):
    leaves = 0

    def is_leaf_module(self, module, name):
        self.leaves += 1
        return super().is_leaf_module(module, name)


torch.manual_seed(0)
net, x = Net(), torch.ones(2, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(8):
    loss = net(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step in (0, 3, 4):
        tracer = Counting()
        graph = tracer.trace(net)
        print(step, tracer.leaves, [node.op for node in graph.nodes])
        print(
            make_fx(lambda p: torch.autograd.grad((p * p).sum(), p)[0])(torch.ones(2, requires_grad=True)).code.strip()
        )
program = torch.export.export(net, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
print([node.name for node in program.graph.nodes], program.graph_signature.user_outputs)
print(torch.allclose(program.module()(torch.ones(5, 3)), net(torch.ones(5, 3))))
print(str(fx.symbolic_trace(net).graph))
for each in fx.symbolic_trace(net).graph.nodes:
    print(each.name, each.target if isinstance(each.target, str) else each.target.__name__, each.stack_trace is None)
