"""Names are asked for traits: each name is judged once, by the tables of all frameworks."""

from __future__ import annotations

from collections import Counter
from enum import IntFlag

import numpy as np
import pytest

from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder
from stepscope.vocabulary import lookup
from stepscope.vocabulary.lookup import has_trait, is_called, name_has, names_have, traits_by_type
from stepscope.vocabulary.tables import NameTable
from stepscope.vocabulary.traits import CallTrait, CodeTrait, InputTrait, KernelTrait, OpTrait, PurposeTrait

NAMES = ("aten::cat", "aten::mm", "model/add:AddV2", "model/cast:Cast", "aten::cat", "copy.3")


def trace_of(names: tuple[str, ...] = NAMES) -> HostTrace:
    builder = TraceBuilder("host")
    thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for at, name in enumerate(names):
        thread.event(name, 10 * at, 5, EventKind.OP)
    return builder.build()


def test_events_have_the_traits_of_their_names() -> None:
    trace = trace_of()
    names = [trace.name_of(row) for row in range(len(trace.events))]

    moves = has_trait(trace, trace.events.type, OpTrait.MOVES_DATA)
    either = has_trait(trace, trace.events.type, OpTrait.MOVES_DATA | OpTrait.CONVERTS)

    assert [name for name, yes in zip(names, moves, strict=True) if yes] == ["aten::cat", "aten::cat", "copy.3"]
    assert [name for name, yes in zip(names, either, strict=True) if yes] == [
        "aten::cat", "model/cast:Cast", "aten::cat", "copy.3",
    ]  # fmt: skip
    assert not has_trait(trace, trace.events.type, OpTrait.IS_RANDOM).any()


def test_only_types_that_are_asked_about_have_traits() -> None:
    trace = trace_of()
    some = trace.events.type[1:2]

    assert np.count_nonzero(traits_by_type(trace, some, OpTrait.MULTIPLIES | OpTrait.MOVES_DATA)) == 1
    assert has_trait(trace, trace.events.type[:0], OpTrait.MOVES_DATA).tolist() == []


def test_a_name_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: Counter[str] = Counter()

    def counts(name: str) -> bool:
        judged[name] += 1
        return "cat" in name

    table = NameTable(rules=((OpTrait.MOVES_DATA, counts), (OpTrait.CONVERTS, r"nothing")))
    monkeypatch.setattr(lookup, "_TABLES", (table,))
    lookup._all_readers.cache_clear()
    lookup._readers.cache_clear()
    trace = trace_of()
    try:
        for trait in (OpTrait.MOVES_DATA, OpTrait.CONVERTS, OpTrait.MOVES_DATA):
            has_trait(trace, trace.events.type, trait)
    finally:
        lookup._all_readers.cache_clear()
        lookup._readers.cache_clear()

    assert judged == dict.fromkeys(NAMES, 1)


def test_the_key_of_a_name_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many classes of traits a table has rules for."""
    asked: Counter[str] = Counter()

    def key(name: str) -> str:
        asked[name] += 1
        return name[-3:]

    table = NameTable(rules=((OpTrait.MOVES_DATA, r"cat"), (CallTrait.WAITS, r"::")), key=key)
    monkeypatch.setattr(lookup, "_TABLES", (table,))
    lookup._all_readers.cache_clear()
    lookup._readers.cache_clear()
    trace = trace_of()
    try:
        moves = has_trait(trace, trace.events.type, OpTrait.MOVES_DATA)
        has_trait(trace, trace.events.type, CallTrait.WAITS)
    finally:
        lookup._all_readers.cache_clear()
        lookup._readers.cache_clear()

    assert asked == dict.fromkeys(NAMES, 1)
    assert moves.tolist() == [name.endswith("cat") for name in NAMES]


def test_names_that_are_always_the_same_are_found_without_being_decoded() -> None:
    trace = trace_of()

    assert is_called(trace, ("aten::cat", "aten::none")).tolist() == [name == "aten::cat" for name in NAMES]
    assert not is_called(trace, ("aten::none",)).any()


def test_a_table_sees_its_own_names_only_and_of_these_the_key() -> None:
    table = NameTable(
        rules=((OpTrait.CONVERTS, r"to$"), (OpTrait.MOVES_DATA, r"t"), (CallTrait.WAITS, r"to")),
        applies=lambda name: name.startswith("x::"),
        key=lambda name: name[3:],
    )

    read = table.reader(OpTrait)
    assert [OpTrait(read(name)) for name in ("x::to", "to", "x::tofu", "x::a")] == [
        OpTrait.CONVERTS | OpTrait.MOVES_DATA, OpTrait(0), OpTrait.MOVES_DATA, OpTrait(0),
    ]  # fmt: skip
    assert table.traits == {
        OpTrait: int(OpTrait.CONVERTS | OpTrait.MOVES_DATA),
        CallTrait: int(CallTrait.WAITS),
    }


@pytest.mark.parametrize("kind", [OpTrait, PurposeTrait, CallTrait, CodeTrait, InputTrait, KernelTrait])
def test_every_trait_can_be_given_by_some_table_and_fits(kind: type[IntFlag]) -> None:
    given = 0
    for table in lookup._TABLES:
        given |= table.traits.get(kind, 0)

    assert given == sum(kind)
    assert given < 1 << 32


@pytest.mark.parametrize(
    ("name", "trait"),
    [
        ("urEnqueueKernelLaunchWithArgsExp", CallTrait.LAUNCHES_KERNEL),
        ("hipExtModuleLaunchKernel", CallTrait.LAUNCHES_KERNEL),
        ("cudaMemsetAsync", CallTrait.CLEARS),
        ("aten::conv2d", OpTrait.MULTIPLIES),
        ("aten::cudnn_convolution_backward", OpTrait.MULTIPLIES),  # the outermost op of a gradient before PyTorch 1.11
        ("aten::cudnn_convolution_backward", OpTrait.OF_GRADIENT),
        ("aten::miopen_batch_norm", OpTrait.OF_DEVICE_LIBRARY),
        ("aten::_cudnn_rnn", OpTrait.OF_DEVICE_LIBRARY),
        ("aten::_mps_convolution", OpTrait.OF_DEVICE_LIBRARY),
        ("aten::linear_backward", OpTrait.OF_DEVICE_LIBRARY),
        ("npu::npu_format_cast", OpTrait.OF_DEVICE_LIBRARY),
        ("gradients/mul:MatMul", OpTrait.MULTIPLIES),
        ("gradient_tape/model/MatMul:MatMul", OpTrait.OF_GRADIENT),
        ("map/py:EagerPyFunc", OpTrait.CALLS_PYTHON),
        ("pure_callback.4", OpTrait.CALLS_BACK),
        ("EagerLocalExecute: ConcatV2", OpTrait.MOVES_DATA),
        ("EagerLocalExecute: ConcatV2", CallTrait.DISPATCHES_OP),
        ("aten::item", CallTrait.READS_VALUE),
        ("$train.py:4 save_checkpoint", CallTrait.SAVES_STATE),
        ("PjitFunction(stage)", CallTrait.COPIES_IN),
        ("cudaMemcpy", CallTrait.BLOCKING_COPY),
        ("hipGraphLaunch", CallTrait.LAUNCHES_GRAPH),
        ("cudaMalloc", CallTrait.TAKES_MEMORY),
        ("$api.py:12 block_until_ready", CodeTrait.WAITS_FOR_DEVICE),
        ("<built-in function open>", CodeTrait.READS_FILE),
        ("train.py(4): step", CodeTrait.OF_USER),
        ("Iterator::Root::ParallelMapV2", InputTrait.PARALLEL),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", InputTrait.SINGLE_PROCESS),
        ("aten::pin_memory", InputTrait.PINS_MEMORY),
        ("Memcpy HtoD (Pageable -> Device)", KernelTrait.FROM_PAGEABLE),
        ("volta_sgemm_64x64", KernelTrait.WIDE_PRODUCT),
    ],
)
def test_a_name_has_the_trait(name: str, trait: IntFlag) -> None:
    assert name_has(name, trait)
    assert names_have((name, "nothing"), trait).tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "trait"),
    [
        ("aten::add", OpTrait.MOVES_DATA),
        ("aten::linalg_vector_norm", OpTrait.MULTIPLIES),
        ("aten::cudnn_is_acceptable", OpTrait.OF_DEVICE_LIBRARY),  # asked on CPUs, too
        ("aten::mkldnn_linear_backward", OpTrait.OF_DEVICE_LIBRARY),
        ("EagerLocalExecute: __inference_step_3", CallTrait.DISPATCHES_OP),
        ("EagerLocalExecute: ReadVariableOp", OpTrait.MOVES_DATA),  # any program reads its variables
        ("cudaMemcpyAsync", CallTrait.BLOCKING_COPY),
        ("cudaMallocAsync", CallTrait.TAKES_MEMORY),
        ("/usr/lib/python3.11/site-packages/torch/nn/x.py(3): f", CodeTrait.OF_USER),
        ("save_checkpoint", CallTrait.SAVES_STATE),  # no Python call
        ("Iterator::Root::Map", InputTrait.PARALLEL),
        ("gemm_fusion_dot", KernelTrait.WIDE_PRODUCT),
    ],
)
def test_a_name_does_not_have_the_trait(name: str, trait: IntFlag) -> None:
    assert not name_has(name, trait)
