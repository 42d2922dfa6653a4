"""Pairs starts and ends of slices in files whose tracks are not in the order of time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.formats.kineto.document import Raw
from stepscope.kernels import trace_json as scan
from stepscope.model.arrays import I64, Mask

_BEGIN, _END, _WHOLE, _NO_EVENT = ord("B"), ord("E"), ord("X"), ord("M")


def pair_listed_slices(raw: Raw) -> Raw:
    """Pairs slices of writers that list all starts of a group before all its ends, both in one order.

    PyTorch's profiler does: the n-th end after a run of starts is that of the n-th start, whatever their times.  Slices
    of other runs stay as they are; they nest by time.
    """
    halves = np.flatnonzero((raw.phase == _BEGIN) | (raw.phase == _END))
    begins, ends = _partners_in_runs(raw, halves)
    start_ns, end_ns = (raw.us[rows] * 1000 + raw.frac_ps[rows] // 1000 for rows in (begins, ends))
    phase, flags = raw.phase.copy(), raw.flags.copy()
    duration_us, duration_frac_ps = raw.duration_us.copy(), raw.duration_frac_ps.copy()
    phase[begins], phase[ends] = _WHOLE, _NO_EVENT
    flags[begins] |= np.uint8(scan.HAS_DURATION)
    duration_us[begins] = (end_ns - start_ns) // 1000
    duration_frac_ps[begins] = (end_ns - start_ns) % 1000 * 1000
    return replace(raw, phase=phase, flags=flags, duration_us=duration_us, duration_frac_ps=duration_frac_ps)


def _partners_in_runs(raw: Raw, halves: I64) -> tuple[I64, I64]:
    """The starts and ends that belong together by their place in runs: rows, int64 of shape (pairs,) each."""
    is_end = raw.phase[halves] == _END
    first = np.flatnonzero(np.diff(is_end, prepend=~is_end[:1]))
    length = np.diff(np.append(first, len(halves)))
    followed = ~is_end[first[:-1]] & (length[:-1] == length[1:])
    place, run_length = first[:-1][followed], length[:-1][followed]
    run = np.repeat(np.arange(len(place)), run_length)
    offset = np.arange(len(run)) - np.repeat(np.cumsum(run_length) - run_length, run_length)
    at = place[run] + offset
    begins, ends = halves[at], halves[at + run_length[run]]
    fits = (raw.tid[begins] == raw.tid[ends]) & ~_is_later(raw, begins, ends) & (np.diff(raw.stat_offsets)[ends] == 0)
    whole = np.bincount(run, ~fits, len(place)) == 0
    whole &= _runs_out_of_order(raw, run, begins, ends, len(place))
    return begins[whole[run]], ends[whole[run]]


def _is_later(raw: Raw, one: I64, other: I64) -> Mask:
    """Whether the time of one row is after that of another."""
    later: Mask = (raw.us[one] > raw.us[other]) | (
        (raw.us[one] == raw.us[other]) & (raw.frac_ps[one] > raw.frac_ps[other])
    )
    return later


def _runs_out_of_order(raw: Raw, run: I64, begins: I64, ends: I64, runs: int) -> Mask:
    """The runs in which the time of a track goes back: bool of shape (runs,)."""
    rows, of_run = np.concatenate([begins, ends]), np.concatenate([run, run])
    order = np.lexsort((rows, raw.tid[rows], of_run))
    rows, of_run = rows[order], of_run[order]
    same = (of_run[1:] == of_run[:-1]) & (raw.tid[rows[1:]] == raw.tid[rows[:-1]])
    back = same & _is_later(raw, rows[:-1], rows[1:])
    out_of_order: Mask = np.bincount(of_run[1:], back, runs) > 0
    return out_of_order
