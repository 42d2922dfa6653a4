"""Programs of one op each that a step starts one by one: what a compiler merges is computation, not starting."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import MS
from hlo_build import computation, f32, metadata, op, parameter, program
from reporting import context_of
from xla_traces import Ran, trace_of

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.ranking import advise
from stepscope.analysis.advice.rules.dispatch import RULES
from stepscope.analysis.facts.lines import LineFacts

_CALLS = 60  # per step


def _of_one_op(name: str, opcode: str) -> bytes:
    path = metadata(f"jit({name})/{name}", "train.py", 9)
    x = f32(64, 64)
    made = op(name, opcode, x, "x", "x", extra=path)
    return program(computation("main", parameter("x", x), made), name=f"jit_{name}")


def _one_by_one(sum_us: int) -> Context:
    """Two of three calls add, for 50 us each, and one multiplies; or all multiply."""
    names = ("add", "mul", "dot_general") if sum_us else ("dot_general",)
    events, at = list[Ran](), 0
    for step in range(3):
        begin = at
        for call in range(_CALLS):
            name = names[call % len(names)]
            stats: dict[str, int | str] = {
                "hlo_op": name,
                "hlo_module": f"jit_{name}",
                "program_id": names.index(name) + 1,
            }
            events += [Ran("python", f"PjitFunction({name})", at, 52), Ran("python", name, at + 1, 50, stats)]
            at += 53
        events.append(Ran("python", "train", begin, at - begin, {"step_num": step, "_r": 1}))
    opcodes = {"add": "add", "mul": "multiply", "dot_general": "dot"}
    made = {f"jit_{name}({at})": _of_one_op(name, opcodes[name]) for at, name in enumerate(names, start=1)}
    return replace(context_of(trace_of(made, events, device="cpu")), framework="jax")


@pytest.mark.parametrize(("sum_us", "kind"), [(50, "eager_dispatch"), (0, "none")])
def test_ops_that_run_one_by_one_are_told_where_they_compute_for_most_of_the_step(sum_us: int, kind: str) -> None:
    assert advise(_one_by_one(sum_us), RULES).items[0].kind == kind


@pytest.mark.parametrize(
    ("starts", "ms", "kind"), [(60, 3, "none"), (30, 3, "eager_dispatch"), (60, 1, "eager_dispatch")]
)
def test_what_one_function_beside_the_training_starts_is_its_own_advice(starts: int, ms: int, kind: str) -> None:
    """Of 60 calls in 3.2 ms; that function's advice is another rule's."""
    context = _one_by_one(50)
    line = LineFacts("add", "a.py", 1, "", 1.0, ms * MS, {"python": ms * MS}, [], starts, 0, 0, 0, 0.0, 0.0, False)

    beside = replace(context, hosts=[replace(context.hosts[0], lines=[line])])
    assert advise(beside, RULES).items[0].kind == kind
