"""Fourier transforms: lengths that have a fast way, and those that have none."""

from __future__ import annotations

import pytest
from helpers.draw import MS, Sort, draw
from hlo_build import array, computation, f32, op, parameter, program
from xla_traces import Ran, trace_of
from xspace_build import number

from stepscope.analysis.purpose.excess import excesses_of
from stepscope.analysis.purpose.transforms import slow_transforms
from stepscope.model import EventKind, HostTrace

C64 = 15


def _transformed(length: int) -> HostTrace:
    """A step that transforms rows, multiplies, and transforms back."""
    stats = {
        "r": {"Input Dims": f"[[8,{length}],[],[],[]]", "Concrete Inputs": "['', '[1]', '0', 'True']"},
        "b": {"Input Dims": f"[[8,{length // 2 + 1}],[],[],[]]", "Concrete Inputs": f"['', '[1]', '2', '{length}']"},
        "m": {"Input Dims": f"[[8,{length // 2 + 1}],[]]", "Concrete Inputs": "['', '']"},
    }
    names = {"r": "aten::_fft_r2c", "b": "aten::_fft_c2r", "m": "aten::mul"}
    sorts = {key: Sort(EventKind.OP, names[key], "Sequence number", stats[key]) for key in names}
    return draw("""
        host main | M0--------M1--------
        host main | r1--m2b3--r1--m2b3--
    """, sorts)  # fmt: skip


def test_a_length_with_a_large_prime_factor() -> None:
    (found,) = excesses_of(_transformed(32191))

    assert (found.kind, found.ps / MS) == ("slow_transform", 2 * (4.0 + 4.0))
    assert found.fact == (
        "computes Fourier transforms of 32,191 numbers, which has the prime factor 32,191: of 32,400 they take less"
        " than half of the time"
    )


@pytest.mark.parametrize("length", [32768, 32400, 512 * 23])
def test_lengths_of_small_factors_are_fast(length: int) -> None:
    assert excesses_of(_transformed(length)) == ()


@pytest.mark.parametrize(("length", "expected"), [(1009, (1009,)), (1024, None)])
def test_transforms_of_compiled_programs(length: int, expected: tuple[int, ...] | None) -> None:
    main = computation(
        "main", parameter("x", f32(8, length)),
        op("spectrum", "fft", array(C64, 8, length // 2 + 1), "x", extra=number(32, length)),
    )  # fmt: skip
    stats = {"hlo_op": "spectrum", "hlo_module": "jit_step", "program_id": 1}
    events = [Ran("python", "spectrum", 0, 50, stats), Ran("python", "train", 0, 60, {"step_num": 0, "_r": 1})]
    found = slow_transforms(trace_of({"jit_step(1)": program(main, name="jit_step")}, events, device="cpu"))

    assert (found and found.lengths) == expected
