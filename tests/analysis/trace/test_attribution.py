"""Which op a piece of device work belongs to, one rule after the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MS, Sort, draw
from every_form import SESSIONS
from gallery import gallery
from hlo_build import computation, f32, metadata, op, program
from xla_traces import Ran, Value, trace_of

import stepscope
from stepscope.analysis.trace.attribution import HowKnown, attribute, figures, shares
from stepscope.model import EventKind, HostTrace, StatTag
from stepscope.vocabulary.op_names import op_name

K = EventKind

SORTS = {
    "m": Sort(K.OP, "dense/MatMul:MatMul"),
    "r": Sort(K.OP, "Relu:Relu", "graph node id"),
    "O": Sort(K.KERNEL, "gemm", "correlation_id", {"tf_op": "carried/Add:AddV2"}),
    "Q": Sort(K.KERNEL, "node_kernel", "graph node id"),
    "Z": Sort(K.RUNTIME_CALL, "cudaLaunchKernel", "graph node id"),
    "W": Sort(K.KERNEL, "named_node", "graph node id", {"tf_op": "Softmax:Softmax"}),
}


def ops(trace: HostTrace) -> list[tuple[str, str | None, str | None, str]]:
    """Name, op, op type and source of each piece of device work, in order of time."""
    found = attribute(trace)
    table = []
    for at in np.argsort(trace.events.start_ps[found.rows], kind="stable").tolist():
        name, sort = found.ops[found.op[at]] if found.op[at] >= 0 else (None, None)
        table.append((trace.name_of(int(found.rows[at])), name, sort, HowKnown(found.source[at]).name))
    return table


HLO = "%copy-done.2 = f32[5,8]{1,0} copy-done(f32[5,8]{1,0} %x)"
DRAWN = SORTS | {
    "p": Sort(K.COLLECTIVE_CALL, "record_param_comms"),
    "n": Sort(K.COLLECTIVE, "ncclDevKernel_Generic", "correlation_id", {"tf_op": "record_param_comms"}),
    # A node that was copied from node 5, and the call that recorded a node.
    "c": Sort(K.KERNEL, "copy_of_node", "cuda_graph_node_id", {"cuda_graph_orig_node_id": 5}),
    "d": Sort(K.RUNTIME_CALL, "cudaGraphAddKernelNode", "cuda_graph_node_id"),
    "i": Sort(K.DEVICE_OP, HLO),
    "j": Sort(K.DEVICE_OP, HLO, "", {"tf_op": "jit(f)/jit(main)/add:"}),
}


@gallery("""
    an op of its own wins over the op around the call
        host main | m-----
        host main |  L1
        gpu0 s    |    O1-
        ops = [("gemm", "carried/Add", "AddV2", "OWN")]
    the innermost op around the launching call
        host main | Y------------------
        host main |   m--------    A---
        host main |     x---         L2
        host main |      L1
        gpu0 s    |            K1--    K2
        gpu0 t    |                       K3
        ops = [("kernel", "x", "x", "CALL"), ("kernel", "forward", "annotation", "AROUND"),
               ("kernel", None, None, "NONE")]
    a collective is called by what it does and not by the call around that PyTorch writes to it
        host main | p-------   p-----
        host main |   G---      L2
        host main |     L1
        gpu0 s    |         n1-   n2-
        ops = [("ncclDevKernel_Generic", "gloo:all_reduce", "collective", "CALL"),
               ("ncclDevKernel_Generic", "record_param_comms", "collective", "CALL")]
    an op that lies further out is better than a Python call nearby
        host main | m------
        host main |  Y----
        host main |   L1
        gpu0 s    |       K1
        ops = [("kernel", "dense/MatMul", "MatMul", "CALL")]
    the way leads on through what caused the work on another thread
        host main | F-----
        host main |  P7
        host pool |    C7--
        host pool |     L1
        gpu0 s    |        K1
        ops = [("kernel", "train_step", "traced function", "AROUND")]
    a graph node has the op that recorded it
        host main | m---- A-----
        host main |  Z5    L1
        gpu0 s    |          Q5-Q5-Q6
        ops = [("node_kernel", "dense/MatMul", "MatMul", "GRAPH"), ("node_kernel", "dense/MatMul", "MatMul", "GRAPH"),
               ("node_kernel", None, None, "NONE")]
    a graph node has the op that another run of it carries
        host main | x
        gpu0 s    | W5-Q5-Q4-
        ops = [("named_node", "Softmax", "Softmax", "OWN"), ("node_kernel", "Softmax", "Softmax", "GRAPH"),
               ("node_kernel", None, None, "NONE")]
    a graph node is found by the node that it was copied from
        host main | m----
        host main |  d5
        gpu0 s    |      c9-
        ops = [("copy_of_node", "dense/MatMul", "MatMul", "GRAPH")]
    what is known of a graph node itself wins over the node that it was copied from
        host main | m----
        host main |  d5
        gpu0 s    |      W9-c9-
        ops = [("named_node", "Softmax", "Softmax", "OWN"), ("copy_of_node", "Softmax", "Softmax", "GRAPH")]
    the ops of a TPU are what they are called
        tpu0 ops | i--j--
        ops = [("%copy-done.2 = f32[5,8]{1,0} copy-done(f32[5,8]{1,0} %x)", "copy-done.2", "copy-done", "OWN"),
               ("%copy-done.2 = f32[5,8]{1,0} copy-done(f32[5,8]{1,0} %x)", "jit(f)/jit(main)/add", "add", "OWN")]
""")
def test_which_op_work_belongs_to(picture: str, expected: dict[str, Any]) -> None:
    assert ops(draw(picture, DRAWN)) == expected["ops"]


# -- XLA instructions ----------------------------------------------------------------------------------------------


OPS = {
    "fusion.1": ("jit(step)/dot_general", ""),
    "fusion.2": ("layer/MatMul_3", "MatMul"),
    "loop_transpose_fusion": ("x", ""),
}
PROGRAM = program(
    computation(
        "main", *(op(name, "fusion", f32(), extra=metadata(of, op_type=sort)) for name, (of, sort) in OPS.items())
    )
)


def with_program(stats: Mapping[str, Value]) -> HostTrace:
    """One kernel with `stats`, and a program 17 for it."""
    return trace_of({"jit_step(17)": PROGRAM}, [Ran("Stream #1(Kernel)", "kernel", 0, 1, stats)])


def test_an_instruction_leads_to_the_op_that_it_was_made_from() -> None:
    stats = {"tf_op": "XlaModule:", "hlo_op": "fusion.2", "hlo_module": "jit_step", "program_id": 17}

    assert ops(with_program(stats)) == [("kernel", "layer/MatMul_3", "MatMul", "OWN")]
    assert with_program(stats).type_stats.tag.tolist() == [StatTag.BYTES]


def test_an_instruction_made_from_an_argument_has_a_type_of_its_own() -> None:
    stats = {"hlo_op": "loop_transpose_fusion", "program_id": 17}

    assert ops(with_program(stats)) == [("kernel", "x", "loop_transpose_fusion", "OWN")]


def test_an_instruction_that_no_program_knows_stands_for_itself() -> None:
    assert ops(with_program({"hlo_op": "loop_add_fusion.4"})) == [
        ("kernel", "loop_add_fusion.4", "loop_add_fusion", "OWN")
    ]


# -- what is left --------------------------------------------------------------------------------------------------


def test_shares_add_up_and_the_rest_is_named() -> None:
    trace = draw(
        """
        host main | m------   A---
        host main |   L8        L9
        gpu0 s    | K1--K8K9O7------
        """,
        SORTS,
    )

    assert figures([shares(trace)]) == {
        "device_time_us": 16_000.0,
        "own_percent": 50.0,
        "graph_percent": 0.0,
        "call_percent": 12.5,
        "around_percent": 12.5,
        "whole_graph_percent": 0.0,
        "unattributed_percent": 25.0,
    }
    assert shares(trace).early_ps == 4 * MS


def test_work_whose_call_is_missing_in_the_middle_was_not_launched_early() -> None:
    trace = draw("host main | x------ x--\nhost main |   L5    L9\ngpu0 s    | K1--K5--K7----------K9--")

    found = shares(trace)
    assert (found.early_ps, found.time_ps[HowKnown.NONE]) == (4 * MS, 16 * MS)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("aten::mm", K.OP, ("aten::mm", "mm")),
        ("aiter::rmsnorm", K.OP, ("aiter::rmsnorm", "rmsnorm")),
        ("model/MatMul:MatMul", K.OP, ("model/MatMul", "MatMul")),
        ("jit(f)/dot_general:", K.DEVICE_OP, ("jit(f)/dot_general", "dot_general")),
        ("loop_add_fusion.4", K.DEVICE_OP, ("loop_add_fusion.4", "loop_add_fusion")),
        ("Iterator::Root::Map#id=3#", K.ITERATOR, ("Iterator::Root::Map", "Dataset")),
        ("IteratorGetNextOp::DoCompute", K.INPUT_WAIT, ("IteratorGetNextOp::DoCompute", "input wait")),
        ("IteratorGetNext:IteratorGetNext", K.INPUT_WAIT, ("IteratorGetNext", "IteratorGetNext")),
        ("PjitFunction(f)", K.TRACED_FUNCTION, ("PjitFunction(f)", "traced function")),
        ("MemcpyH2D", K.COPY_HOST_TO_DEVICE, ("MemcpyH2D", "copy host to device")),
    ],
)
def test_names_and_types_of_ops(text: str, kind: EventKind, expected: tuple[str, str]) -> None:
    assert op_name(text, kind) == expected


# Share of device time without an op.  What remains in the two was launched before their recordings began.
UNATTRIBUTED = {"tf-gpu-multi-worker": 0.2, "torch-h100-qwen": 30.1, "torch-mi300-resnet": 31.8}


@pytest.mark.parametrize("session", SESSIONS)
def test_real_device_work_is_attributed(session: str, corpus: Path) -> None:
    profile = stepscope.load(corpus / session)
    parts = [shares(profile.trace(host)) for host in profile.hosts]
    found, unattributed = figures(parts), UNATTRIBUTED.get(session, 0.0)

    assert found["unattributed_percent"] == pytest.approx(unattributed, abs=0.06)
    assert sum(value or 0 for key, value in found.items() if key != "device_time_us") == pytest.approx(100, abs=1e-3)
    if unattributed > 1:
        assert sum(part.early_ps for part in parts) == sum(part.time_ps[HowKnown.NONE] for part in parts)
