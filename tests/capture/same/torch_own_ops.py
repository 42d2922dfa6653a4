# modes: run prove
# timeout: 300
"""Operations of the program's own, in the dispatcher, in autograd, in the compiler, in vmap and in exports."""

import torch
from torch import Tensor


@torch.library.custom_op("program::twice", mutates_args=())
def twice(x: Tensor, k: float = 2.0) -> Tensor:
    calls.append(tuple(x.shape))
    return x * k


@twice.register_fake
def _(x, k=2.0):
    return torch.empty_like(x)


twice.register_autograd(lambda ctx, g: (g * 2.0, None), setup_context=lambda ctx, inputs, output: None)
twice.register_vmap(lambda info, dims, x, k=2.0: (twice(x, k), dims[0]))
calls = []
library = torch.library.Library("program", "FRAGMENT")
library.define("thrice(Tensor x) -> Tensor")
library.impl("thrice", lambda x: x * 3, "CompositeImplicitAutograd")
graphs = []


def backend(graph, inputs):
    graphs.append(len(list(graph.graph.nodes)))
    return graph.forward


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.ops.program.thrice(twice(self.linear(x)))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
compiled = torch.compile(model, backend=backend, fullgraph=True)
for n in range(8):
    optimizer.zero_grad()
    loss = compiled(torch.ones(2, 3)).sum()
    loss.backward()
    optimizer.step()
    print(n, round(float(loss), 4))
print(graphs, calls[:3], len(calls), torch.compiler.is_compiling())
print(torch.vmap(twice)(torch.ones(2, 2)).sum())
print(torch.library.opcheck(twice, (torch.ones(2, requires_grad=True),)))
exported = torch.export.export(Model(), (torch.ones(2, 3),))
print([str(node.target) for node in exported.graph.nodes])
explained = torch._dynamo.explain(model)(torch.ones(2, 3))
print(explained.graph_count, explained.graph_break_count, explained.op_count)
print(sorted(torch._dynamo.utils.counters["stats"].items()), dict(torch._dynamo.utils.counters["graph_break"]))


def branches(x):
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))


print(
    torch.compile(branches, backend=backend)(torch.zeros(2)),
    torch.jit.script(lambda_ := torch.nn.ReLU())(torch.ones(1)),
)
step = torch.compile(lambda p: [each.add_(1) for each in p], backend=backend)
step([torch.zeros(2)])
optimizer_step = torch.compile(optimizer.step, backend=backend)
optimizer_step()
print(graphs, len(torch._dynamo.utils.compile_times("str")) > 0)
