# modes: run watch prove
"""Gradient, inference, anomaly, determinism, autocast and default device, on the main thread and others."""

import threading
import warnings

import torch


def state():
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled(),
        torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled(),
        torch.are_deterministic_algorithms_enabled(), str(torch.get_default_device()), torch.get_default_dtype(),
        torch.get_num_threads(), torch._C._get_tracing_state(), torch.overrides._len_torch_function_stack(),
        torch.backends.mkldnn.enabled, torch.get_float32_matmul_precision(),
    )  # fmt: skip


def train(model, optimizer, count):
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()


torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
states = [state()]
with torch.autocast("cpu", torch.bfloat16), torch.device("cpu"):
    train(model, optimizer, 8)
    states.append(state())
    with torch.inference_mode():
        states.append(state())
        thread = threading.Thread(target=lambda: states.append(state()))
        thread.start()
        thread.join()


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        states.append(state())
        return gradient * float("nan")


def forward():
    return Fails.apply(model(torch.ones(2, 8))).sum()


with warnings.catch_warnings(record=True) as caught, torch.autograd.set_detect_anomaly(True):
    warnings.simplefilter("always")
    try:
        forward().backward()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
for each in caught:
    lines = [line.strip() for line in str(each.message).splitlines() if line.strip().startswith("File ")]
    print(each.category.__name__, [line.rpartition(" in ")[2] for line in lines])
for each in states:
    print(each)
torch.use_deterministic_algorithms(False)
print(state())
