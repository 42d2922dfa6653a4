"""The programs that were compiled during a capture: which, at what cost, and what changed in their arguments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hlo_build import array, bf16, computation, f32, metadata, op, parameter, program
from warm_python import WARM
from xla_traces import Ran, trace_of
from xspace_build import text

import stepscope
from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.trace.compilations import Compilation, arguments_of, compilations_of
from stepscope.analysis.xla.compiled import find_change
from stepscope.model import HostTrace


def taking(**arguments: bytes) -> bytes:
    """A program that takes these arguments."""
    named = [(name, shape, metadata(name)) for name, shape in arguments.items()]
    ops = [
        op(f"p.{at}", "parameter", shape, extra=parameter("", shape, at).extra + where)
        for at, (_, shape, where) in enumerate(named)
    ]
    shapes = text(4, b"".join(text(1, shape) for _, shape, _ in named))
    return program(computation("main", *ops), name="jit_step", schedule=shapes)


STEP = [taking(w=f32(4, 4), batch=shape) for shape in (f32(8, 4), f32(9, 4), bf16(9, 4))]


def call(at: int, us: int, lower: int, compiles: int = 0, function: str = "step") -> list[Ran]:
    """A call of a compiled function that lowers for so long, and then compiles."""
    inside = [Ran("python", "lower_sharding_computation", at + 1, lower)] if lower else []
    inside += [Ran("python", "backend_compile_and_load", at + 1 + lower, compiles)] if compiles else []
    # JAX records each call twice.
    return [
        Ran("python", f"PjitFunction({function})", at, us),
        Ran("python", f"PjitFunction({function})", at, us),
        *inside,
    ]


def compiled(programs: Sequence[bytes], *events: Ran) -> list[Compilation]:
    labels = {f"jit_step({number})": proto for number, proto in zip((4, 9, 13), programs, strict=False)}
    return compilations_of(traced(labels, *events))


def traced(programs: dict[str, bytes], *events: Ran) -> HostTrace:
    return trace_of(programs, list(events), device="host")


def test_a_call_that_compiles_gets_the_last_program_of_its_function() -> None:
    found = compiled(STEP, *call(0, 5, 0), *call(10, 100, 20, 60), *call(200, 50, 10, 30))

    assert [(each.program, each.function) for each in found] == [("jit_step(9)", "step"), ("jit_step(13)", "step")]
    assert [(each.total_ps, each.lower_ps, each.compile_ps) for each in found] == [
        (100_000_000, 20_000_000, 60_000_000),
        (50_000_000, 10_000_000, 30_000_000),
    ]
    assert [each.cache for each in found] == ["", ""]


def test_the_argument_that_changed() -> None:
    found = compiled(STEP, *call(10, 100, 20, 60), *call(200, 50, 10, 30))

    assert [find_change(each) for each in found] == [
        ("shape", "batch", "f32[8,4]", "f32[9,4]"),
        ("type", "batch", "f32[9,4]", "bf16[9,4]"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (taking(x=f32(4)), taking(x=f32(4)), ("nothing", "", "", "")),
        (taking(x=f32(4), y=f32(4)), taking(x=f32(5), y=f32(5)), ("shape", "x and 1 more", "f32[4]", "f32[5]")),
        (taking(x=f32(4)), taking(x=bf16(5)), ("shape and type", "x", "f32[4]", "bf16[5]")),
        (taking(x=f32(4)), taking(x=f32(4), n=array(4)), ("arguments", "", "1 arguments", "2 arguments")),
    ],
)
def test_what_may_change(before: bytes, after: bytes, expected: tuple[str, str, str, str]) -> None:
    (found,) = compiled([before, after], *call(0, 50, 10, 30))

    assert find_change(found) == expected


def test_the_first_program_of_a_function_has_none_before_it() -> None:
    (found,) = compiled(STEP[:1], *call(0, 50, 10, 30))

    assert (found.program, find_change(found)) == ("jit_step(4)", ("first", "", "", ""))


def test_a_function_that_is_lowered_and_not_compiled_comes_from_the_cache_on_disk() -> None:
    found = compiled(STEP, *call(0, 100, 20), *call(200, 50, 10, 30))

    assert [each.cache for each in found] == ["hit", "miss"]


def test_a_program_that_is_written_to_the_cache_was_not_in_it() -> None:
    written = Ran("python", "$compilation_cache.py:346 put_executable_and_time", 85, 5)
    found = compiled(STEP, *call(0, 100, 20, 60), written)

    assert [each.cache for each in found] == ["miss"]


def test_compiling_on_another_thread_belongs_to_the_call_that_waits() -> None:
    stats = {"name": "jit_step"}
    backend = Ran("compiler", "CpuCompiler::RunBackend", 25, 50, stats)
    found = compiled(STEP, *call(0, 100, 20), backend)

    assert [(each.program, each.compile_ps, each.cache) for each in found] == [("jit_step(13)", 50_000_000, "")]


def test_more_compilations_than_programs_leave_it_open_which_is_which() -> None:
    found = compiled(STEP[:1], *call(0, 100, 20, 60), *call(200, 50, 10, 30))

    assert [(each.program, find_change(each)) for each in found] == [("", ("", "", "", ""))] * 2


def test_numbers_that_are_fingerprints_say_no_order() -> None:
    programs = {"jit_step(12190760917235803885)": STEP[0], "jit_step(3)": STEP[1]}

    (found,) = compilations_of(traced(programs, *call(0, 50, 10, 30)))

    assert found.program == ""


def test_a_capture_without_compiling_has_no_compilation() -> None:
    assert compiled(STEP, *call(0, 5, 0)) == []


def test_arguments_without_a_name_are_called_by_their_place() -> None:
    module = programs_of(traced({"p(1)": taking(**{"": f32(3)})})).module(0)

    assert arguments_of(module) == (("argument 0", "f32[3]"),)


LIVE = """
import sys
import jax, jax.numpy as jnp

jax.config.update("jax_compilation_cache_dir", sys.argv[2])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

@jax.jit
def step(params, batch):
    return params["w"] - jnp.tanh(batch @ params["w"]).sum()

params = {"w": jnp.ones((16, 16))}
batches = [jnp.ones((8, 16)), jnp.ones((9, 16)), jnp.ones((9, 16), jnp.bfloat16)]
step(params, batches[0])
options = jax.profiler.ProfileOptions()
options.python_tracer_level = 0
with jax.profiler.trace(sys.argv[1], profiler_options=options):
    for batch in batches:
        step(params, batch).block_until_ready()
"""


def test_a_fresh_capture_of_jax(tmp_path: Path) -> None:
    found = []
    for run in ("first", "second"):
        done = WARM.run("jax", ["-c", LIVE, str(tmp_path / run), str(tmp_path / "cache")], os.environ, timeout=600)
        assert done.returncode == 0, done.stderr
        compiled = compilations_of(stepscope.load(tmp_path / run).trace())
        found.append([(each.cache, find_change(each)) for each in compiled if each.function == "step"])

    changes = [("shape", "batch", "f32[8,16]", "f32[9,16]"), ("type", "batch", "f32[9,16]", "bf16[9,16]")]
    assert found[0] == [("", change) for change in changes]  # nothing in this capture says that there is a cache
    assert found[1] == [("hit", change) for change in changes]
    # Programs from the cache run under the numbers of the process that compiled them, and are found all the same.
    stats = stepscope.load(tmp_path / "second").hlo_stats()
    steps = {str(row["program"]) for row in stats.rows if str(row["program"]).startswith("jit_step(")}
    assert steps == {each.program for each in compiled if each.function == "step"} | {min(steps)}
    assert all(row["flops"] is not None for row in stats.rows if "dot" in str(row["text"]))
