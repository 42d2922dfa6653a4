# modes: run watch prove
"""Checkpointed parts, saved tensors that go elsewhere, and what runs again in the backward pass."""

import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

seen = []


class Layer(torch.nn.Module):
    def __init__(self, at):
        super().__init__()
        self.at, self.inner = at, torch.nn.Linear(6, 6)

    def forward(self, x):
        seen.append(
            (
                self.at,
                torch.is_grad_enabled(),
                torch.overrides._len_torch_dispatch_stack()
                if hasattr(torch.overrides, "_len_torch_dispatch_stack")
                else 0,
            )
        )
        return torch.nn.functional.dropout(torch.tanh(self.inner(x)), 0.5)


class Offload(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self):
        super().__init__(lambda each: (seen.append(("pack", tuple(each.shape))), each.numpy(force=True).copy())[1],
                         lambda kept: (seen.append("unpack"), torch.from_numpy(kept))[1])  # fmt: skip


class Square(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.name = "square"

    @staticmethod
    def backward(ctx, gradient):
        seen.append((ctx.name, ctx.needs_input_grad, len(ctx.saved_tensors)))
        return 2 * gradient * ctx.saved_tensors[0]


def policy(ctx, op, *args, **kwargs):
    seen.append((str(op), ctx.is_recompute))
    return (
        torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE
        if op is torch.ops.aten.tanh.default
        else torch.utils.checkpoint.CheckpointPolicy.PREFER_RECOMPUTE
    )


torch.manual_seed(1)
layers = torch.nn.Sequential(*map(Layer, range(4)))
optimizer = torch.optim.Adam(layers.parameters())
x = torch.ones(2, 6, requires_grad=True)
for at in range(9):
    optimizer.zero_grad()
    if at % 3 == 0:
        y = checkpoint(layers[1], checkpoint(layers[0], x, use_reentrant=True), use_reentrant=False)
    elif at % 3 == 1:
        y = checkpoint_sequential(layers, 2, x, use_reentrant=False)
    else:
        y = checkpoint(layers, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy))
    with Offload():
        loss = Square.apply(y).sum()
    loss.backward()
    optimizer.step()
print(round(loss.item(), 6), len(seen))
for each in seen[:30] + seen[-12:]:
    print(each)
print(torch.func.vmap(torch.func.grad(lambda z: Square.apply(z).sum()))(torch.ones(2, 3)).sum())
