# modes: run watch prove
"""TorchScript, saved and loaded, differentiates itself; hooks and a custom Function see each call once."""

import io

import torch


@torch.jit.script
def penalty(x: torch.Tensor) -> torch.Tensor:
    y = (x * x).sum()
    (gradient,) = torch.autograd.grad([y], [x], create_graph=True)
    assert gradient is not None
    return gradient.pow(2).sum()


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        seen.append("forward")
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        seen.append("backward")
        return 2 * gradient


seen = []
model = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()), torch.ones(1, 2))
buffer = io.BytesIO()
torch.jit.save(model, buffer)
buffer.seek(0)
model = torch.jit.load(buffer)
with torch.no_grad():
    for each in model.parameters():
        each.fill_(0.25)
optimizer = torch.optim.RMSprop(model.parameters())
for at in range(7):
    optimizer.zero_grad()
    x = Twice.apply(torch.ones(1, 2, requires_grad=True))
    x.register_hook(lambda gradient: seen.append("hook"))
    loss = model(x).sum() + penalty(x)
    loss.backward()
    optimizer.step()
print(round(loss.item(), 5), len(seen), seen[:6], penalty.code.count("grad"))
