# modes: run api watch prove
import copy
import functools
import inspect
import io
import warnings

import torch
from torch.optim import lr_scheduler, swa_utils
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

warnings.simplefilter("always")
torch.manual_seed(0)


class Mine(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self.calls = []

    @torch.no_grad()
    def step(self, closure=None, *, self_=1, scale=1.0):
        self.calls.append(scale)
        for group in self.param_groups:
            for each in group["params"]:
                each.sub_(each.grad, alpha=group["lr"] * scale)
        return "result"


def train(make, steps=6, **more):
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 1)
    optimizer = make(model.parameters())
    schedule = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps + 1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).pow(2).sum().backward()
        result = optimizer.step(**more)
        schedule.step()
    return model, optimizer, result


order = []
pre = register_optimizer_step_pre_hook(lambda o, a, k: order.append(("global pre", len(a), sorted(k))))
post = register_optimizer_step_post_hook(lambda o, a, k: order.append(("global post", len(a), sorted(k))))
model, optimizer, result = train(functools.partial(Mine, lr=0.1), scale=0.5)
print(result, optimizer.calls, order[:2], len(order), inspect.signature(Mine.step), inspect.signature(optimizer.step))
pre.remove()
post.remove()
handle = optimizer.register_step_pre_hook(lambda o, a, k: (a, {**k, "scale": 0.25}))
optimizer.step()
handle.remove()
print(
    optimizer.calls[-1], optimizer.step.__name__, optimizer.step.__func__.__qualname__, Mine.step.__wrapped__.__name__
)
for make in (torch.optim.Adam, torch.optim.RMSprop, functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9)):
    model, optimizer, _ = train(make)
    again = copy.deepcopy(optimizer)
    text = io.BytesIO()
    torch.save(optimizer.state_dict(), text)
    print(type(optimizer).__name__, [round(float(each.sum()), 6) for each in model.parameters()], len(text.getvalue()))
    print(sorted(vars(optimizer)) == sorted(vars(again)), repr(again) == repr(optimizer))
weight = torch.nn.Parameter(torch.tensor([4.0]))
lbfgs = torch.optim.LBFGS([weight], max_iter=5)
evaluated = []


def closure():
    lbfgs.zero_grad()
    loss = (weight - 1).pow(2).sum()
    loss.backward()
    evaluated.append(round(float(loss.detach()), 4))
    return loss


for _ in range(3):
    lbfgs.step(closure)
print(evaluated, round(float(weight.detach()), 4))
optimizer = torch.optim.SGD([weight], lr=1.0)
schedule = lr_scheduler.StepLR(optimizer, 1)
schedule.step()  # before the first step: PyTorch warns
optimizer.step()
average = swa_utils.AveragedModel(model)
average.update_parameters(model)
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
for _ in range(6):
    optimizer.zero_grad()
    scaler.scale(weight.pow(2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
print(scaler.get_scale(), int(average.n_averaged), optimizer.step.__self__ is optimizer)
optimizer.step = lambda closure=None: print("replaced")
optimizer.step()
try:
    torch.optim.SGD([], lr=1.0)
except ValueError as error:
    print(error)
