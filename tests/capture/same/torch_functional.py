# modes: run watch
import warnings

import torch
from torch import func
from torch.autograd import forward_ad, graph

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
params = dict(model.named_parameters())
x = torch.arange(6.0).reshape(2, 3)


def loss(params, x):
    return func.functional_call(model, params, (x,)).pow(2).sum()


optimizer = torch.optim.Adam(model.parameters())
for step in range(8):
    packed = []
    with graph.saved_tensors_hooks(lambda t: packed.append(tuple(t.shape)) or t, lambda t: t):
        value = model(x).sum()
    handle = graph.register_multi_grad_hook(tuple(model.parameters()), lambda grads: print("all", len(grads)))
    value.backward()
    handle.remove()
    optimizer.step()
    print(step, packed, value.grad_fn.name(), [type(each[0]).__name__ for each in value.grad_fn.next_functions])
    gradients = func.grad(loss)(params, x)
    per_sample = func.vmap(func.grad(loss), (None, 0))(params, x)
    print({name: tuple(each.shape) for name, each in per_sample.items()}, sorted(gradients) == sorted(params))
print(func.jacrev(torch.sin)(torch.zeros(2)), func.jvp(torch.exp, (torch.zeros(1),), (torch.ones(1),)))
print(func.hessian(lambda t: (t**3).sum())(torch.ones(2)), func.linearize(torch.cos, torch.zeros(1))[1](torch.ones(1)))
with forward_ad.dual_level():
    dual = forward_ad.make_dual(torch.ones(2), torch.full((2,), 3.0))
    print(forward_ad.unpack_dual(dual * dual).tangent)
warnings.simplefilter("always")
try:
    with torch.autograd.detect_anomaly():
        (torch.zeros(1, requires_grad=True) / 0).sqrt().mul(float("nan")).backward()
except RuntimeError as error:
    print(str(error).splitlines()[0])


class Double(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark = len(inputs)

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.mark


print(func.vmap(func.grad(lambda t: Double.apply(t).sum()))(torch.ones(3, 2)))
