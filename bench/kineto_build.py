"""Large Kineto traces from a small one: its steps, repeated, with other times, step numbers and ids each time.

    python -m bench.kineto_build TARGET EVENTS [FILE]

writes about EVENTS events (whole repetitions) to TARGET.  FILE is the trace to repeat, `.json` or `.json.gz`; without
it one is made up.  The layout is that of PyTorch's writer, one line for each group of fields, so that events take as
many bytes as in real files.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

Event = dict[str, Any]

GAP_US = 1_000
SEED = 20260101
# Ids that match one another in a file; a repetition moves each by the range that the file uses.
IDS = ("External id", "external id", "correlation", "Sequence number", "Ev Idx", "Python id", "Python parent id")
STEP = "ProfilerStep#"


@dataclass(frozen=True)
class Template:
    """The text of an event with a place for each number that a repetition moves: `base + repetition * stride`."""

    text: str
    base: tuple[float, ...]
    stride: tuple[float, ...]

    def repeated(self, repetition: int) -> str:
        """The event's text in a repetition."""
        return self.text % tuple(
            base + repetition * stride for base, stride in zip(self.base, self.stride, strict=True)
        )


def build_profile(document: dict[str, Any], events: int, path: Path) -> tuple[int, int]:
    """Writes a trace repeated to about `events` events; returns the numbers of events written and of repetitions."""
    once = document["traceEvents"]
    repetitions = max(1, round(events / max(1, len(once))))
    with path.open("w", encoding="utf-8") as out:
        _write(document, repetitions, out)
    return len(once) * repetitions, repetitions


def read_trace(path: Path) -> dict[str, Any]:
    """Reads a recorded trace."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.name.endswith(".gz") else data).decode("utf-8", "replace")
    document: dict[str, Any] = json.loads(text, strict=False)
    return document


def _write(document: dict[str, Any], repetitions: int, out: TextIO) -> None:
    strides = _strides(document["traceEvents"])
    templates = [_template(event, strides) for event in document["traceEvents"]]
    head = {key: value for key, value in document.items() if key not in ("traceEvents", "traceName")}
    out.write("{\n" + "".join(f'  "{key}": {json.dumps(value)},\n' for key, value in head.items()))
    out.write('  "traceEvents": [\n')
    separator = "  "
    for repetition in range(repetitions):
        for template in templates:
            out.write(separator + template.repeated(repetition))
            separator = ",\n  "
    out.write("\n  ]\n}\n")


def _strides(events: list[Event]) -> dict[str, float]:
    """How far one repetition moves each kind of number."""
    begin = min(event["ts"] for event in events if event.get("ph") == "X")
    end = max(event["ts"] + event.get("dur", 0) for event in events if event.get("ph") == "X")
    strides: dict[str, float] = {"ts": end - begin + GAP_US}
    ids = [int(event["id"]) for event in events if str(event.get("id", "")).isdigit()]
    strides["id"] = max(ids, default=0) + 1
    for name in IDS:
        used = [event["args"][name] for event in events if isinstance(event.get("args", {}).get(name), int)]
        strides[name] = max(used, default=0) + 1
    # Launches carry "External id", kernels of older releases "external id"; flows carry correlation ids.
    for family in (("External id", "external id"), ("correlation", "id")):
        largest = max(strides[name] for name in family)
        strides.update(dict.fromkeys(family, largest))
    strides[STEP] = len({event["name"] for event in events if str(event.get("name", "")).startswith(STEP)}) or 1
    return strides


def _template(event: Event, strides: dict[str, float]) -> Template:
    numbers: list[tuple[float, float]] = []

    def place(value: Any, stride: float) -> str:
        numbers.append((value, stride))
        return "%.3f" if isinstance(value, float) else "%d"

    def text(key: str, value: Any) -> str:
        if key in strides and isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return place(value, strides[key])
        if key == "name" and str(value).startswith(STEP) and value[len(STEP) :].isdigit():
            return f'"{STEP}{place(int(value[len(STEP) :]), strides[STEP])}"'
        return json.dumps(value).replace("%", "%%")

    def fields(names: list[str]) -> str:
        return ", ".join(f'"{name}": {text(name, event[name])}' for name in names if name in event)

    rest = [name for name in event if name not in ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args")]
    groups = [fields(["ph", "cat"]), fields(["name", "pid", "tid"]), fields(["ts", "dur"]), fields(rest)]
    if "args" in event:
        inner = ",\n      ".join(
            f"{json.dumps(name).replace('%', '%%')}: {text(name, value)}" for name, value in event["args"].items()
        )
        groups.append('"args": {\n      ' + inner + "\n    }")
    body = "{\n    " + ",\n    ".join(group for group in groups if group) + "\n  }"
    return Template(body, tuple(value for value, _ in numbers), tuple(stride for _, stride in numbers))


# -- a made-up trace ---------------------------------------------------------------------------------------------------

_LAYERS = ("aten::conv2d", "aten::batch_norm", "aten::relu_", "aten::linear", "aten::add_", "aten::layer_norm")
_KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, at::detail::Array<char*, {}> >"
)
_STEPS, _OPS_A_STEP = 6, 2_000


def synthetic() -> dict[str, Any]:
    """Steps of a training loop on one GPU: ops that call ops, that launch kernels."""
    rng = random.Random(SEED)
    gpu = {
        "id": 0,
        "name": "Made-up GPU",
        "totalGlobalMem": 32 << 30,
        "computeMajor": 8,
        "computeMinor": 0,
        "numSms": 80,
    }
    return {"schemaVersion": 1, "deviceProperties": [gpu], "traceEvents": list(_events(rng))}


def _events(rng: random.Random) -> Iterator[Event]:
    now, number = 1_000_000.0, 1
    for step in range(_STEPS):
        begin, free = now, now
        for _ in range(_OPS_A_STEP):
            events, now, free = _op(rng, number, now, free)
            yield from events
            number += 3
        now = max(now, free) + 50
        yield _host("user_annotation", f"{STEP}{step}", begin, now - begin, {"External id": number})


def _op(rng: random.Random, number: int, now: float, free: float) -> tuple[list[Event], float, float]:
    """An op with the op inside it, its launch and its kernel; when the host continues, and when the device is free."""
    name, length = rng.choice(_LAYERS), rng.uniform(20, 60)
    launch, work = now + 0.6 * length, rng.uniform(5, 80)
    start = max(free, launch + 8)
    shapes = [[64, rng.choice((64, 128, 256)), 56, 56], [], []]
    op_args = {"External id": number, "Sequence number": number, "Fwd thread id": 0, "Input Dims": shapes}
    links = {"External id": number + 1, "correlation": number + 2}
    kernel_args = {
        "queued": 0, "device": 0, "context": 1, "stream": 7, **links, "registers per thread": 32, "shared memory": 0,
        "blocks per SM": 39.2, "warps per SM": 156.8, "grid": [3136, 1, 1], "block": [128, 1, 1],
        "est. achieved occupancy %": 50,
    }  # fmt: skip
    arrow = {"cat": "ac2g", "name": "ac2g", "id": number + 2}
    kernel = {"ph": "X", "cat": "kernel", "name": _KERNEL.format(rng.randrange(40)), "pid": 0, "tid": 7}
    events = [
        _host("cpu_op", name, now, length, op_args),
        _host("cpu_op", f"{name}_impl", now + 2, length - 4, {"External id": number + 1, "Input Dims": shapes}),
        _host("cuda_runtime", "cudaLaunchKernel", launch, 6, {"cbid": 211, **links}),
        kernel | {"ts": round(start, 3), "dur": round(work, 3), "args": kernel_args},
        {"ph": "s", "pid": 1, "tid": 1, "ts": round(launch, 3), **arrow},
        {"ph": "f", "pid": 0, "tid": 7, "ts": round(start, 3), **arrow, "bp": "e"},
    ]
    return events, now + length + 3, start + work


def _host(category: str, name: str, start: float, length: float, args: dict[str, Any]) -> Event:
    place = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1}
    return place | {"ts": round(start, 3), "dur": round(length, 3), "args": args}


if __name__ == "__main__":
    source = read_trace(Path(sys.argv[3])) if len(sys.argv) > 3 else synthetic()
    print(json.dumps(build_profile(source, int(sys.argv[2]), Path(sys.argv[1]))))
