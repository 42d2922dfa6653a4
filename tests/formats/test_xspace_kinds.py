"""Kinds survive a file, also where names do not tell them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepscope.formats.kineto.reader import read as read_kineto
from stepscope.formats.xspace import classify
from stepscope.formats.xspace.reader import read
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder, Trait

K = EventKind


def facts(trace: HostTrace) -> list[tuple[str, str, int]]:
    """Name, kind and traits of every event, in order."""
    rows = zip(range(len(trace.events)), trace.events.kind.tolist(), trace.events.traits.tolist(), strict=True)
    return [(trace.name_of(event), EventKind(kind).name, traits) for event, kind, traits in rows]


def test_one_name_may_stand_for_several_kinds() -> None:
    builder = TraceBuilder("h")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    line.event("load", 0, 9, K.INPUT_WAIT, {"batch": 3})
    line.event("load", 10, 9, K.ANNOTATION)
    line.event("load", 20, 9, K.OP, traits=Trait.COMPUTES_16BIT | Trait.EAGER)
    again = read(write(builder.build()), "again", "h")
    assert facts(again) == [("load", "INPUT_WAIT", 0), ("load", "ANNOTATION", 0), ("load", "OP", 5)]
    assert again.stats_of_event(0) == {"batch": 3}
    assert again.stats_of_event(1) == {}


def test_the_kinds_of_a_pytorch_trace_survive(corpus: Path) -> None:
    path = corpus / "torch-v100-resnet50-workers0" / "worker0.1623143089861.pt.trace.json.gz"
    trace = read_kineto(path.read_bytes(), "torch", "h")
    again = read(write(trace), "again", "h")
    np.testing.assert_array_equal(again.events.kind, trace.events.kind)
    np.testing.assert_array_equal(again.events.traits, trace.events.traits)
    np.testing.assert_array_equal(again.events.start_ps, trace.events.start_ps)
    assert len(again.type_stats) == len(again.event_types) * len(trace.type_stats) // len(trace.event_types)


def test_names_of_known_writers_tell_their_kinds_and_nothing_is_added(corpus: Path) -> None:
    path = next((corpus / "jax-mi300x-attention").rglob("*.xplane.pb"))
    written = write(read(path.read_bytes(), "jax", "h"))
    assert b"stepscope_kind" not in written


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("%copy-start = (f32[8]{0:T(8)}, f32[8]{0:T(8)S(5)}, u32[]{:S(2)}) copy-start(f32[8]{0:T(8)S(5)} %p)",
         K.COPY_HOST_TO_DEVICE),
        ("%copy-done = f32[8]{0:T(8)} copy-done((f32[8]{0:T(8)}, f32[8]{0:T(8)S(5)}, u32[]{:S(2)}) %copy-start)",
         K.COPY_HOST_TO_DEVICE),
        ("%copy-start.1 = (f32[8]{0:T(8)S(5)}, f32[8]{0:T(8)}, u32[]{:S(2)}) copy-start(f32[8]{0:T(8)} %add)",
         K.COPY_DEVICE_TO_HOST),
        ("%copy-done.1 = f32[8]{0:T(8)S(5)} copy-done((f32[8]{0:T(8)S(5)}, f32[8]{0:T(8)}, u32[]{:S(2)}) %start)",
         K.COPY_DEVICE_TO_HOST),
        ("%copy-done.2 = f32[8]{0:T(8)S(1)} copy-done((f32[8]{0:T(8)S(1)}, f32[8]{0:T(8)}, u32[]{:S(2)}) %start)",
         K.DEVICE_OP),
    ],
    ids=["start in", "done in", "start out", "done out", "within the device"],
)  # fmt: skip
def test_copies_of_a_tpu_from_and_to_the_memory_of_the_host(instruction: str, kind: EventKind) -> None:
    builder = TraceBuilder("h")
    builder.framework = "jax"
    line = builder.line(builder.plane("/device:TPU:0", PlaneKind.TPU), "XLA Ops", LineKind.DEVICE_OPS)
    line.event(instruction, 0, 9, K.OTHER)

    assert EventKind(int(read(write(builder.build()), "again", "h").events.kind[0])) == kind


@pytest.mark.parametrize("value", [200, -1, 1 << 20])
def test_a_kind_that_does_not_exist_is_left_alone(value: int) -> None:
    builder = TraceBuilder("h")
    builder.framework = "jax"
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    line.event("a/MatMul:MatMul", 0, 9, K.OP, {"stepscope_kind": value})
    assert facts(read(write(builder.build()), "again", "h")) == [("a/MatMul:MatMul", "OP", 0)]


@pytest.mark.parametrize(
    ("names", "framework"),
    [
        (("PjitFunction(step)", "jit_step"), "jax"),
        (("jit_step.7",), "jax"),
        (("$profiler.py:1 start_trace",), "jax"),
        (("aten::mm", "torch/_jit_internal.py(104): is_scripting"), "pytorch"),
        (("aten::mm", "$profiler.py:342 start_trace"), "pytorch"),
        (("train.py(3): step",), ""),
    ],
    ids=["jax", "program", "jax-python", "torch-python", "torch-filtered-python", "none"],
)
def test_the_framework_is_told_by_names_that_only_it_writes(names: tuple[str, ...], framework: str) -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    for row, name in enumerate(names):
        line.event(name, row * 10, 10, EventKind.OTHER)
    assert classify.detect_framework(builder.build().strings) == framework


def test_events_are_classified_the_same_however_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    types, lines = np.array([0, 1, 1, 2, 0, 2, 1], np.int32), np.array([0, 0, 0, 0, 1, 1, 1], np.int32)
    flags = np.array([0, 1, 0, 2, 0, 0, 1], np.uint16)
    type_kind = np.array([K.OP, K.KERNEL, K.OTHER], np.uint8)
    of_types = type_kind, np.zeros(3, np.uint8), np.array([0, 1], np.uint8)

    whole = classify.classify_events(types, lines, flags, *of_types)
    monkeypatch.setattr(classify, "_BLOCK", 3)
    for part, all_at_once in zip(classify.classify_events(types, lines, flags, *of_types), whole, strict=True):
        assert part.tolist() == all_at_once.tolist()
    none = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint16)
    assert [column.tolist() for column in classify.classify_events(*none, *of_types)] == [[], []]
