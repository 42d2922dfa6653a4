"""A made-up profile of one GPU training step, for machines that have no recorded one to repeat."""

from __future__ import annotations

import random

from bench import wire

OPS = ("MatMul:MatMul", "BiasAdd:BiasAdd", "Relu:Relu", "Softmax:Softmax", "LayerNorm/Mean:Mean", "dropout/Mul:Mul")
SCOPES = 800
HOST_THREADS = 12
HOST_EVENTS = 1250
KERNELS = 4000
STEP_PS = 600_000_000_000
DEVICE_BEGIN_PS, DEVICE_PS = 60_000_000_000, 480_000_000_000
UNSIGNED = ("correlation_id",)
# XProf recognizes derived lines by these ids, not by their names.
STEPS_LINE, OPS_LINE = -559038737, -559038734
BLOCK, GRID = "block:256,1,1", "grid:160,1,1"


class _Plane:
    """Collects one plane; interns names as the real writers do."""

    def __init__(self, name: str, plane_id: int = 0) -> None:
        self.head = wire.number(1, plane_id) + wire.text(2, name.encode())
        self.lines = b""
        self.types: dict[str, int] = {}
        self.stat_names: dict[str, int] = {}

    def stat(self, name: str, value: int | str) -> bytes:
        key = wire.number(1, self.stat_names.setdefault(name, len(self.stat_names) + 1))
        if isinstance(value, str):
            return wire.text(4, key + wire.text(5, value.encode()))
        return wire.text(4, key + wire.number(3 if name in UNSIGNED else 4, value))

    def event(self, name: str, start_ps: int, duration_ps: int, stats: bytes) -> bytes:
        key = wire.number(1, self.types.setdefault(name, len(self.types) + 1))
        return wire.text(4, key + wire.number(2, start_ps) + wire.number(3, duration_ps) + stats)

    def add_line(self, line_id: int, name: str, events: list[bytes]) -> None:
        head = wire.number(1, line_id) + wire.text(2, name.encode()) + wire.number(3, 1000)
        self.lines += wire.text(3, head + b"".join(events))

    def encode_plane(self) -> bytes:
        maps = b"".join(
            wire.text(field, wire.number(1, key) + wire.text(2, wire.number(1, key) + wire.text(2, name.encode())))
            for field, names in ((4, self.types), (5, self.stat_names))
            for name, key in names.items()
        )
        return wire.text(1, self.head + self.lines + maps)


def build_synthetic(seed: int = 1) -> bytes:
    """An XSpace of about 23,000 events on one host and one GPU: one step, its group 0."""
    rng = random.Random(seed)
    names = [f"model/encoder/layer_{i}/{rng.choice(OPS)}" for i in range(SCOPES)]
    return _host(rng, names) + _device(rng, names) + wire.text(4, b"bench-host")


def _host(rng: random.Random, names: list[str]) -> bytes:
    plane = _Plane("/host:CPU")
    correlations = iter(range(1, KERNELS + 1))
    for thread in range(HOST_THREADS):
        events = [
            _executor_op(plane, rng, names, STEP_PS * i // HOST_EVENTS, next(correlations, None))
            for i in range(HOST_EVENTS)
        ]
        plane.add_line(1000 + thread, f"tf_Compute/{1000 + thread}", events)
    return plane.encode_plane()


def _executor_op(plane: _Plane, rng: random.Random, names: list[str], start: int, correlation: int | None) -> bytes:
    stats = plane.stat("group_id", 0) + plane.stat("id", rng.randrange(1 << 33, 1 << 62)) + plane.stat("is_eager", 0)
    if correlation is None:
        name, more = rng.choice(names), plane.stat("shape", f"[{rng.randrange(512)},1024]")
    else:
        name, more = "cuLaunchKernel", plane.stat("correlation_id", correlation) + plane.stat("context_id", "$$5")
    return plane.event(name, start, rng.randrange(STEP_PS // HOST_EVENTS), stats + more)


def _device(rng: random.Random, names: list[str]) -> bytes:
    plane = _Plane("/device:GPU:0")
    kernels, ops = [], []
    for i in range(KERNELS):
        slot = DEVICE_PS // KERNELS
        start, duration = DEVICE_BEGIN_PS + slot * i, rng.randrange(slot // 4, slot)
        op = names[i % len(names)]
        group = plane.stat("group_id", 0)
        details = plane.stat("kernel_details", f"regs:38 static_shared:0 dynamic_shared:0 {GRID} {BLOCK} occ_pct:50")
        launch = plane.stat("correlation_id", i + 1) + plane.stat("context_id", "$$5") + plane.stat("tf_op", op)
        kernel = f"void kernel_{i % 97}<float>(float const*, float*)"
        kernels.append(plane.event(kernel, start, duration, group + launch + details))
        ops.append(plane.event(op, start, duration, group))
    plane.add_line(14, "Stream #14(Compute)", kernels)
    plane.add_line(OPS_LINE, "TensorFlow Ops", ops)
    step = plane.stat("group_id", 0) + plane.stat("step_name", "0")
    plane.add_line(STEPS_LINE, "Steps", [plane.event("0", DEVICE_BEGIN_PS, DEVICE_PS, step)])
    return plane.encode_plane()
