"""Own autograd functions, hooks and anomaly mode."""

import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


x = torch.ones(2, requires_grad=True)
x.register_hook(lambda g: print("hook", g.tolist()))
for _ in range(8):
    y = Cube.apply(x).sum()
    print(y.grad_fn.name(), [type(f[0]).__name__ for f in y.grad_fn.next_functions])
    y.backward()
print(x.grad.tolist(), torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)[0].tolist())
try:
    with torch.autograd.detect_anomaly(check_nan=True):
        (torch.sqrt(x - 2)).sum().backward()
except RuntimeError as error:
    print(str(error)[:60])
