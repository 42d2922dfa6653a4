"""Programs of one op each that a step starts one by one: what a compiler merges is computation, not starting."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hlo_build import computation, f32, metadata, op, parameter, program
from reporting import context_of
from xla_traces import Ran, trace_of

from stepscope.analysis.advice.ranking import advise
from stepscope.analysis.advice.rules.dispatch import RULES

_CALLS = 60  # per step


def _of_one_op(name: str, opcode: str) -> bytes:
    path = metadata(f"jit({name})/{name}", "train.py", 9)
    x = f32(64, 64)
    made = op(name, opcode, x, "x", "x", extra=path)
    return program(computation("main", parameter("x", x), made), name=f"jit_{name}")


@pytest.mark.parametrize(("sum_us", "kind"), [(50, "eager_dispatch"), (0, "none")])
def test_ops_that_run_one_by_one_are_told_where_they_compute_for_most_of_the_step(sum_us: int, kind: str) -> None:
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
    context = replace(context_of(trace_of(made, events, device="cpu")), framework="jax")

    assert advise(context, RULES).items[0].kind == kind
