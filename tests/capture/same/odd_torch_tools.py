"""PyTorch's odd corners: parametrizations, functorch, hooks of all kinds, swa, closures, anomaly mode, packages, meta."""

import copy
import io
import pickle
import warnings
import torch
from torch import nn
from torch.nn.utils import parametrize
from _show import show, show_frames

torch.manual_seed(0)


class Sym(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, a):
        return a.triu()


model = nn.Sequential(
    nn.Linear(4, 4),
    nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)),
    nn.LSTM(4, 4),
)
parametrize.register_parametrization(model[0], "weight", Sym())
events = []
model[0].register_forward_pre_hook(lambda m, a, k: events.append("pre"), with_kwargs=True)
model[0].register_full_backward_hook(lambda m, gi, go: events.append("full"))
model[0].register_full_backward_pre_hook(lambda m, go: events.append("fullpre"))
nn.modules.module.register_module_forward_hook(lambda m, i, o: events.append(type(m).__name__))
params = list(model.parameters())
torch.autograd.graph.register_multi_grad_hook(params, lambda grads: events.append(len(grads)))
for p in params[:1]:
    p.register_post_accumulate_grad_hook(lambda p: events.append("acc"))
optimizer = torch.optim.LBFGS(params, lr=0.01, max_iter=3)
optimizer.register_step_pre_hook(lambda o, a, k: events.append("step"))
optimizer.register_step_post_hook(lambda o, a, k: events.append("stepped"))
calls = []


def closure():
    calls.append(1)
    optimizer.zero_grad()
    out, _ = model[2](model[1](model[0](torch.ones(2, 4))))
    loss = out.sum()
    loss.backward()
    return loss


for n in range(6):
    loss = optimizer.step(closure)
print(len(calls), len(events), events[:14], round(loss.item(), 4))
twin = copy.deepcopy(optimizer)
print(
    type(pickle.loads(pickle.dumps(twin))).__name__,
    twin.state_dict().keys(),
    len(vars(optimizer)),
    sorted(vars(optimizer)),
)
average = torch.optim.swa_utils.AveragedModel(nn.Linear(2, 2))
sgd = torch.optim.SGD(average.module.parameters(), lr=0.1)
sched = torch.optim.swa_utils.SWALR(sgd, 0.05)
cyc = torch.optim.lr_scheduler.OneCycleLR(sgd, 0.1, total_steps=20)
for n in range(6):
    sgd.zero_grad()
    average.module(torch.ones(1, 2)).sum().backward()
    sgd.step()
    cyc.step()
    average.update_parameters(average.module)
print(
    average.n_averaged.item(),
    cyc.get_last_lr(),
    sgd.step.__name__,
    hasattr(sgd.step, "_wrapped_by_lr_sched"),
    sgd.step.__qualname__,
)
small = nn.Linear(2, 2)


def compute(p, x):
    return torch.func.functional_call(small, p, (x,)).sum()


p = dict(small.named_parameters())
print(
    torch.func.vmap(torch.func.grad(compute), in_dims=(None, 0))(p, torch.ones(3, 2))["weight"].shape,
    torch.func.jacrev(torch.sin)(torch.ones(2)).shape,
    torch.func.hessian(lambda x: (x**3).sum())(torch.ones(2)),
)
with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = torch.zeros(1, requires_grad=True)
    show_frames("anomaly", lambda: torch.sqrt(x * 0 - 1).sum().backward())
    print([str(w.message).splitlines()[0][:80] for w in caught])
with torch.device("meta"):
    m = nn.Linear(3, 3)
    s = torch.optim.Adam(m.parameters())
    m(torch.ones(1, 3)).sum().backward()
    s.step()
    print(s.state[m.weight]["exp_avg"].device)
with torch.inference_mode():
    y = small(torch.ones(1, 2))
show("inference", lambda: y.sum().backward())
from torch.utils.checkpoint import checkpoint

x = torch.ones(2, 2, requires_grad=True)
checkpoint(lambda z: torch.sin(z) @ small.weight, x, use_reentrant=False).sum().backward()
print(x.grad.sum().item())
scaler = torch.amp.GradScaler("cpu")
adam = torch.optim.AdamW(small.parameters())
for n in range(4):
    adam.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        l = small(torch.ones(1, 2)).sum()
    scaler.scale(l).backward()
    scaler.unscale_(adam)
    nn.utils.clip_grad_norm_(small.parameters(), 1.0)
    scaler.step(adam)
    scaler.update()
print(scaler.get_scale(), scaler.state_dict()["_growth_tracker"])
