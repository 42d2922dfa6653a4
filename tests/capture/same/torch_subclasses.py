# modes: run watch
import copy
import io

import torch
from torch.nn.utils import parametrizations, prune
from torch.utils import checkpoint
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(0)
log = []


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        log.append(getattr(function, "__name__", "?"))
        return super().__torch_function__(function, types, args, kwargs or {})


class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        log.append(str(function))
        return function(*args, **(kwargs or {}))


@torch.library.custom_op("program::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


scaled.register_fake(lambda x, by: torch.empty_like(x))
scaled.register_autograd(
    lambda ctx, g: (g * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = parametrizations.weight_norm(torch.nn.Linear(3, 3))
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return scaled(self.drop(torch.tanh(self.inner(x))), 2.0)


model = Block()
hooks = []
model.register_forward_pre_hook(lambda m, a: hooks.append("pre"))
model.register_forward_hook(lambda m, a, o: hooks.append("forward"))
model.register_full_backward_hook(lambda m, i, o: hooks.append("backward"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    x = torch.ones(2, 3, requires_grad=True)
    out = checkpoint.checkpoint(model, x, use_reentrant=bool(step % 2))
    with Seen():
        out.sum().backward()
        optimizer.step()
    logged = torch.ones(3).as_subclass(Logged)
    (logged + model.inner.weight.detach()).sum().item()
    print(step, len(log), log[:4], log[-4:], hooks)
    log.clear()
    hooks.clear()
prune.l1_unstructured(linear := torch.nn.Linear(4, 4), "weight", 0.5)
print(int((linear.weight == 0).sum()), [name for name, _ in linear.named_buffers()])
text = io.BytesIO()
torch.save(copy.deepcopy(linear), text)
text.seek(0)
print(torch.load(text, weights_only=False), float(torch.rand(1)), torch.get_rng_state().sum())
