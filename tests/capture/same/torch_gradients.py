"""Gradients: values, hooks, arguments, exceptions and what they pass."""

import torch
from _show import depth, show, show_frames
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
w = torch.ones(3, requires_grad=True)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        print("depth", depth())
        return 2 * g * ctx.saved_tensors[0]


seen = []
w.register_hook(lambda g: seen.append(g.sum().item()))
for i in range(8):
    w.grad = None
    (Square.apply(w) * i).sum().backward()
    show("grad", lambda: torch.autograd.grad(outputs=(w**3).sum(), inputs=[w], create_graph=True)[0].sum().backward())
    show("kept", lambda: torch.autograd.backward(tensors=[(w * 2).sum()], retain_graph=True, inputs=[w]))
    show("checkpoint", lambda: checkpoint(lambda x: (x.sin() ** 2).sum(), w, use_reentrant=i % 2 == 0).backward())
show("hooks", lambda: (len(seen), seen[:6]))
show("functional", lambda: torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.ones(2)))
show("jacobian", lambda: torch.autograd.functional.jacobian(lambda x: x**2, torch.ones(2), vectorize=True))
show("func", lambda: torch.func.grad(lambda x: (x**2).sum())(torch.ones(3)))
show("vmap", lambda: torch.func.vmap(torch.func.grad(lambda x: (x**2).sum()))(torch.ones(2, 3)))
show("jvp", lambda: torch.func.jvp(lambda x: x**2, (torch.ones(2),), (torch.ones(2),)))
show("multi", lambda: torch.autograd.grad([(w * 1).sum(), (w * 2).sum()], w, [torch.tensor(1.0), torch.tensor(2.0)]))
show("unused", lambda: torch.autograd.grad(w.sum(), [w, torch.ones(1, requires_grad=True)], allow_unused=True))
show("batched", lambda: torch.autograd.grad(w * 2, w, torch.eye(3), is_grads_batched=True))
loss = (w * 2).sum()
loss.backward()
show_frames("again", lambda: (loss.backward(), loss.backward()))
once = (w**2).sum()
once.backward()
show_frames("freed", once.backward)
show_frames("no graph", lambda: torch.ones(1).backward())
show_frames("unexpected", lambda: torch.autograd.grad(w.sum()))
show_frames(
    "anomaly",
    lambda: (
        torch.autograd.set_detect_anomaly(False),
        torch.autograd.grad(w.sum(), [torch.ones(1, requires_grad=True)]),
    ),
)
print(w.grad)
once.backward()
