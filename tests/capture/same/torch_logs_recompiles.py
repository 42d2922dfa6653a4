# modes: run watch prove
# timeout: 300
"""Dynamo's own account of graph breaks, recompilations, guards and counters."""

import os
import tempfile

logged, own = tempfile.TemporaryFile("w+"), os.dup(2)
os.dup2(logged.fileno(), 2)
import torch
import torch._dynamo
from torch._dynamo.utils import counters

torch._logging.set_logs(recompiles=True, graph_breaks=True)
graphs = []


def backend(graph, inputs):
    graphs.append([node.name for node in graph.graph.nodes])
    return graph.forward


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.calls = torch.nn.Linear(4, 4), 0

    def forward(self, x, flag=True):
        self.calls += 1
        y = self.inner(x)
        if y.sum() > 1e9:
            print("never")
        return y.relu() if flag else y.tanh()


model = torch.compile(Net(), backend=backend)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for at in range(14):
    optimizer.zero_grad()
    model(torch.ones(2 + at // 6, 4), flag=at % 5 != 4).sum().backward()
    optimizer.step()
print(len(graphs), graphs)
print({name: dict(counters[name]) for name in ("frames", "stats")}, len(counters["graph_break"]))
explained = torch._dynamo.explain(Net())(torch.ones(2, 4))
print(explained.graph_count, explained.graph_break_count, explained.op_count)
torch._dynamo.reset()
with torch._dynamo.config.patch(error_on_recompile=True):
    model(torch.ones(2, 4))
    try:
        model(torch.ones(2, 4), flag=False)
    except Exception as error:
        print(type(error).__name__)
os.dup2(own, 2)
logged.seek(0)
said = [line.partition("] [__")[2] for line in logged if "[__" in line]
print(len(said), [line[:70] for line in said if "ecompiling" in line or "raph break" in line.lower()])
