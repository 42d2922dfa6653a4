# modes: run watch
"""What PyTorch's functions and optimizers are, to whoever looks at them."""

import copy
import inspect
import io
import pickle
import sys
import typing
import warnings
import weakref

import torch
from _show import show

torch.manual_seed(0)
warnings.simplefilter("always")
model = torch.nn.Linear(3, 1)
kinds = [
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
    torch.optim.LBFGS,
    torch.optim.RAdam,
]
optimizers = [kind(model.parameters(), lr=0.01) for kind in kinds]


class Own(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(
        self, closure=None, step=None, optimizer=None, function=None, self_=None, call=None, args=None, state=None
    ):
        return step, optimizer, function, call, args, state


class Slots(Own):
    __slots__ = ("extra",)


own = Own(model.parameters())
for i in range(12):
    show("own", lambda: own.step(step=i, optimizer=2, function=3, call=4, args=5, state=6) if i < 3 else own.step())
for optimizer in optimizers:

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3)).sum()
        loss.backward()
        return loss

    for _ in range(3):
        show(type(optimizer).__name__, lambda: optimizer.step(closure))
    step = type(optimizer).step
    show("step", lambda: (step.__name__, step.__qualname__, step.__module__, inspect.signature(step), type(step)))
    show("step dict", lambda: (sorted(vars(step)), step.hooked, step.__wrapped__.__qualname__, step.__code__.co_name))
    show("step source", lambda: (inspect.getsource(step)[:50], inspect.unwrap(step).__code__.co_firstlineno))
    show("step bound", lambda: (optimizer.step == optimizer.step, optimizer.step.__func__ is step))
    show("step pickle", lambda: pickle.loads(pickle.dumps(step)) is step)
    show(
        "hooks",
        lambda: (optimizer._optimizer_step_post_hooks, optimizer._optimizer_step_pre_hooks, sorted(vars(optimizer))),
    )
    show("copies", lambda: [len(each(optimizer).state) for each in (copy.copy, copy.deepcopy)])
    show("refs", lambda: sys.getrefcount(optimizer))
module = sys.modules["torch.optim.optimizer"]
show("global hooks", lambda: (module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks))
show("class", lambda: sorted(k for k in vars(torch.optim.Optimizer)))
show(
    "profile hook",
    lambda: (torch.optim.Optimizer.profile_hook_step, inspect.getsource(torch.optim.Optimizer.profile_hook_step)[:60]),
)
show("init", lambda: inspect.signature(torch.optim.Optimizer.__init__))
for function in (
    torch.autograd.grad,
    torch.autograd.backward,
    torch.Tensor.backward,
    torch.utils.data.dataloader._BaseDataLoaderIter.__next__,
):
    show(
        "function",
        lambda: (
            function.__name__,
            function.__qualname__,
            function.__module__,
            type(function).__name__,
            sorted(vars(function)),
        ),
    )
    show("signature", lambda: inspect.signature(function))
    show("source", lambda: (inspect.getsource(function)[:60], inspect.getsourcefile(function).rpartition("/")[2]))
    show("pickle", lambda: pickle.loads(pickle.dumps(function)) is function)
    show("hints", lambda: typing.get_type_hints(function).keys())
show(
    "override",
    lambda: (
        torch.autograd.grad in torch.overrides.get_ignored_functions(),
        torch.overrides.resolve_name(torch.autograd.grad),
    ),
)
show(
    "loader",
    lambda: (
        type(torch.__spec__.loader).__name__,
        vars(torch.__spec__.loader).keys(),
        pickle.loads(pickle.dumps(torch.__spec__.loader)).name,
    ),
)
for scheduler in (
    torch.optim.lr_scheduler.StepLR(optimizers[0], 1),
    torch.optim.lr_scheduler.ExponentialLR(optimizers[1], 0.9),
):
    for _ in range(3):
        scheduler.step()
    show("scheduler", lambda: (scheduler.get_last_lr(), scheduler.optimizer.step.__name__))
file = io.BytesIO()
torch.save(optimizers[1], file)
file.seek(0)
show("saved", lambda: type(torch.load(file, weights_only=False)).__name__)
slots = Slots(model.parameters())
for _ in range(4):
    slots.step()
show("weak", lambda: weakref.ref(slots)() is slots)
