import torch
from torch import nn
from torch.nn.modules import module as m

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters())
ids = []
for i in range(12):
    h = model.register_forward_hook(lambda *a: None)
    ids.append(h.id)
    loss = model(torch.ones(4, 8)).sum()
    ids.append(loss.grad_fn._sequence_nr())
    t = loss.register_hook(lambda g: g)
    ids.append(t.id)
    loss.backward()
    opt.step()
    opt.zero_grad()
    h.remove()
print([b - a for a, b in zip(ids, ids[3:], strict=False)][:60])
print(len(m._global_forward_hooks), len(m._global_backward_hooks), len(m._global_forward_pre_hooks))
from torch.optim import optimizer as o

print(
    len(o._global_optimizer_pre_hooks),
    len(o._global_optimizer_post_hooks),
    len(opt._optimizer_step_pre_hooks),
    sorted(vars(opt)),
)
print(sorted(k for k in vars(type(opt))), sorted(k for k in vars(torch.optim.Optimizer)))
