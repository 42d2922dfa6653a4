# modes: run prove
"""Hooks of tensors, gradients and modules; anomalies; inference; parametrizations; automatic mixed precision."""

import copy
import pickle
import sys
import warnings

import torch
from torch.nn.utils import parametrizations, parametrize

torch.manual_seed(0)
packed = []


class Symmetric(torch.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT


model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
parametrize.register_parametrization(model[0], "weight", Symmetric())
parametrizations.weight_norm(model[2])
order = []
model.register_forward_pre_hook(lambda m, a: order.append("pre"))
model.register_forward_hook(lambda m, a, o: order.append("forward"))
model.register_full_backward_pre_hook(lambda m, g: order.append("back pre"))
model.register_full_backward_hook(lambda m, a, g: order.append("back"))
model.register_state_dict_post_hook(lambda m, s, p, l: order.append("state"))
for p in model.parameters():
    p.register_post_accumulate_grad_hook(lambda p: order.append(("accumulated", tuple(p.shape))))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
optimizer.register_step_pre_hook(lambda o, a, k: order.append("step pre"))
optimizer.register_step_post_hook(lambda o, a, k: order.append("step post"))
scaler = torch.amp.GradScaler("cpu")
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
for n in range(9):
    saving = torch.autograd.graph.saved_tensors_hooks(lambda x: packed.append(x.shape) or x, lambda x: x)
    with saving, torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.ones(2, 4)).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    optimizer.zero_grad()
    print(
        n,
        round(float(loss), 4),
        schedule.get_last_lr(),
        optimizer._opt_called if hasattr(optimizer, "_opt_called") else None,
    )
print(len(packed), order[:16], len(order))
twin, other = copy.deepcopy((model, optimizer))
print(
    other.param_groups[0]["params"][0] is next(iter(twin.parameters())), sorted(vars(optimizer)) == sorted(vars(other))
)
print(sorted(other.state_dict()["param_groups"][0]), type(optimizer).step is torch.optim.AdamW.step)
print(len(pickle.dumps(torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=1.0))) > 10)
print(
    sorted(optimizer.__getstate__()),
    len(optimizer._optimizer_step_pre_hooks),
    len(optimizer._optimizer_step_post_hooks),
)
with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = torch.tensor([-1.0], requires_grad=True)
    try:
        x.sqrt().backward()
    except RuntimeError as error:
        print(str(error)[:60])
print([str(each.message).split("\n")[0][:50] for each in caught], [each.filename.rpartition("/")[2] for each in caught])
with torch.inference_mode():
    y = model(torch.ones(1, 4))
print(y.is_inference(), y.requires_grad, sys.getrefcount(y), torch.is_grad_enabled())
torch.use_deterministic_algorithms(True)
print(torch.are_deterministic_algorithms_enabled(), torch.get_num_threads() > 0, torch.initial_seed())
