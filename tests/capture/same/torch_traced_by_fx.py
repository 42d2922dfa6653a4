# modes: run watch prove
# timeout: 240
"""Functions are traced by fx, make_fx, functionalize and export while a loop of the same module trains."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def loss_of(weights, batch):
    return torch.func.functional_call(model, weights, (batch,)).pow(2).mean()


def train_step(weights, batch):
    gradients = torch.func.grad(loss_of)(weights, batch)
    return {name: each - 0.1 * gradients[name] for name, each in weights.items()}


class Counts(torch.fx.Interpreter):
    ran = 0

    def run_node(self, node):
        Counts.ran += 1
        return super().run_node(node)


class Negates(torch.fx.Transformer):
    def call_module(self, target, args, kwargs):
        return -super().call_module(target, args, kwargs)


with torch.no_grad():
    for each in model.parameters():
        each.fill_(0.1)
shapes = []
for at in range(8):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    if at in (1, 3, 4, 6):
        traced = torch.fx.symbolic_trace(model)
        Counts(traced).run(torch.ones(2, 4))
        weights = {name: each.detach() for name, each in model.named_parameters()}
        graph = make_fx(train_step)(weights, torch.ones(2, 4))
        pure = make_fx(torch.func.functionalize(lambda x: x.clone().add_(1).mul_(2)))(torch.ones(2))
        shapes.append((len(traced.graph.nodes), len(graph.graph.nodes), len(pure.graph.nodes)))
print(round(loss.item(), 6), shapes, Counts.ran, Negates(traced).transform()(torch.ones(1, 4)).shape)
print([node.name for node in graph.graph.nodes], traced.code.count("\n"))
print([str(node.target) for node in pure.graph.nodes])
exported = torch.export.export(model, (torch.ones(2, 4),), dynamic_shapes=({0: torch.export.Dim("batch", max=8)},))
print(
    [str(node.target) for node in exported.run_decompositions().graph.nodes], exported.module()(torch.ones(5, 4)).shape
)
node = next(node for node in graph.graph.nodes if node.op == "call_function")
print([line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()][-1:], sorted(node.meta))
