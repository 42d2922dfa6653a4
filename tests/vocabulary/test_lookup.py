"""Names are asked for traits: each name is judged once, by the tables of all frameworks."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from enum import IntFlag

import numpy as np
import pytest

from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder
from stepscope.vocabulary import lookup
from stepscope.vocabulary.categories import CATEGORY_RULES
from stepscope.vocabulary.frameworks import framework_of
from stepscope.vocabulary.lookup import has_trait, is_called, name_has, names_have, traits_by_type
from stepscope.vocabulary.patterns import Pattern
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


# -- what names are drawn as ------------------------------------------------------------------------------------------


def category_of(name: str, where: str) -> str | None:
    """What the page makes of the rules: the first that is found in the name, in lower case."""
    found = (rule for rule in CATEGORY_RULES if rule.where in ("", where) and re.search(rule.pattern, name.lower()))
    return next((rule.category for rule in found), None)


@pytest.mark.parametrize(
    ("name", "where", "category"),
    [
        ("cudnn_convolution", "device", None),
        ("copy host to device", "device", "device_to_device"),
        ("copy device to host", "device", "device_to_device"),
        ("Memcpy HtoD (Pageable -> Device)", "device", "device_to_device"),
        ("copy-done", "device", "device_to_device"),
        ("aten::copy_", "host", "device_to_device"),
        ("ncclKernel_AllReduce_RING", "device", "device_collectives"),
        ("all-reduce", "device", "device_collectives"),
        ("record_param_comms", "device", "device_collectives"),
        ("void cutlass::device_kernel<cutlass::gemm::collective::CollectiveMma<Sm90> >()", "device", None),
        ("void tensorflow::functor::FillPhiloxRandomKernelLaunch<...>", "device", None),
        ("cudaLaunchKernel", "host", "kernel_launch"),
        ("aten::add_", "host", None),
        ("Iterator::Prefetch", "host", "input"),
        ("input_transpose_fusion", "device", None),
        ("backend_compile", "host", "compilation"),
        ("idle", "device", "other"),
    ],
)
def test_a_name_is_drawn_as_its_category(name: str, where: str, category: str | None) -> None:
    assert category_of(name, where) == category


def test_every_rule_is_of_a_category_of_the_breakdown_and_can_be_read_in_javascript() -> None:
    assert {rule.category for rule in CATEGORY_RULES} <= set(CATEGORIES)
    for rule in CATEGORY_RULES:
        assert re.search(r"\(\?[^:!]|\\[AZ]", rule.pattern) is None


# -- frameworks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "framework"),
    [
        (["/x/torch/_jit_internal.py(46): <module>", "/x/torch/nn/modules/linear.py(9): Linear.forward"], "pytorch"),
        (["/x/jax/_src/api.py(9): jit", "/x/torch/_jit_internal.py(46): <module>", "/x/jax/_src/core.py(1): f"], "jax"),
        (["jit_step", "/x/torch/nn/modules/linear.py(9): Linear.forward"], "jax"),
        (["/x/tensorflow/python/eager/context.py(1): f"], "tensorflow"),
        (["/x/train.py(3): main"], ""),
    ],
    ids=["torch", "more of jax", "a program of jax", "tensorflow", "none"],
)
def test_samples_of_stacks_name_the_framework_whose_python_they_show(names: list[str], framework: str) -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU"), "main")
    for name in names:
        line.event(name, 0, 1)

    assert framework_of(builder.build().strings) == framework


# -- patterns are compiled when they are first used, and are as those of re from then on ------------------------------


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    ours, theirs = Pattern(r"(a)b+", re.IGNORECASE), re.compile(r"(a)b+", re.IGNORECASE)

    for text in ("ABB", "xab", "no"):
        for name in ("match", "search", "fullmatch"):
            found, expected = getattr(ours, name)(text), getattr(theirs, name)(text)
            assert (found and found.groups()) == (expected and expected.groups())
        assert ours.findall(text) == theirs.findall(text)
        assert ours.sub("-", text) == theirs.sub("-", text)


def test_it_is_compiled_once_and_has_no_other_method() -> None:
    pattern = Pattern(r"a")

    assert pattern.match is pattern.match
    with pytest.raises(AttributeError):
        _ = pattern.other


def test_importing_the_vocabulary_compiles_none_of_its_patterns() -> None:
    script = (
        "import numpy, stepscope.model, re; compiled = []; real = re.compile\n"
        "def compile(*args): compiled.append(args[0]); return real(*args)\n"
        "re.compile = compile\n"
        "import stepscope.vocabulary.lookup, stepscope.vocabulary.op_names, stepscope.vocabulary.tensor_cores\n"
        "import stepscope.vocabulary.precision, stepscope.vocabulary.lines\n"
        "print(compiled)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
