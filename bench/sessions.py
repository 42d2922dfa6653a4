"""Sessions of many hosts with a known truth: `python -m bench.sessions FOLDER --hosts 64 --straggler 7`.

Every host's file is a recorded rank with its times bent, so everything in it is as real as the recording: one rank of a
PyTorch job on GPUs, from which `--base` may choose another, or a drawn one where no recording is at hand.

Bending keeps what must hold between ranks.  In each collective of each step every rank comes late by a small random
time, a straggler by its extra time more; who comes early spends the difference inside the collective, so it ends at
about the same moment on all ranks.  A slow link makes the transfer longer on all ranks.  Then each host's clock is set
wrong by its own skew, and some files are damaged.  `truth.json` beside the logdir says what was done.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from bench.profiles import shared_file
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.workers.collectives import collective_rows
from stepscope.formats.xspace.reader import read
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, Stats, StatTag, TraceBuilder
from stepscope.model.arrays import I64
from stepscope.model.tables import EventTypes
from stepscope.model.taking import take_events

BASE = "corpus/torch-nccl/nccl.pt.trace.json.gz"
RUN = "2026_11_22_00_00_00"
PS_PER_MS = 1_000_000_000
DAMAGES = ("empty", "noise")
_START_UNIX_NS = 1_790_000_000_000_000_000


@dataclass(frozen=True)
class Scenario:
    """What is wrong in a session.

    Attributes:
        hosts: how many.
        steps: the steps of a host: those of the recording, again and again.
        straggler: the rank that computes longer in every step, by `straggler_ms`; None for none.
        slow_link: the transfer of every collective takes as many times as long.
        jitter_us: by how much ranks come late to a collective on average.
        leave_us: by how much later than the first ranks leave a collective on average.
        skew_ms: clocks are wrong by up to this, either way.
        damaged: how many files cannot be read.
    """

    hosts: int
    steps: int = 3
    straggler: int | None = None
    straggler_ms: float = 20.0
    slow_link: float = 1.0
    jitter_us: float = 30.0
    leave_us: float = 5.0
    skew_ms: float = 0.0
    damaged: int = 0
    seed: int = 1


@dataclass(frozen=True)
class Truth:
    """What a session holds: its scenario, the error of each clock in ns, and the damaged hosts."""

    scenario: Scenario
    skew_ns: list[int] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def host_name(rank: int) -> str:
    """The name of a rank's host."""
    return f"host{rank:04}"


def make_session(folder: Path, scenario: Scenario, base: HostTrace | None = None) -> Truth:
    """Writes a logdir with one run, and `truth.json` beside its `plugins`."""
    rng = random.Random(scenario.seed)
    trace = repeat_steps(base or drawn_rank(), scenario.steps)
    bounds = _collective_bounds(trace)
    delays = _delays(scenario, len(bounds), _first_of_steps(trace, bounds))
    leaves = _leaves(scenario, bounds)
    skew = [round(rng.uniform(-1, 1) * scenario.skew_ms * 1e6) for _ in range(scenario.hosts)]
    damaged = sorted(rng.sample(range(scenario.hosts), scenario.damaged))
    run = folder / "plugins" / "profile" / RUN
    run.mkdir(parents=True, exist_ok=True)
    for rank in range(scenario.hosts):
        content = b""
        if rank not in damaged or damaged.index(rank) % len(DAMAGES):
            inside = delays.max(axis=0) - delays[rank] + leaves[rank]
            before = delays[rank] - np.append(0, leaves[rank, :-1])
            bent = bend(trace, bounds, before, inside, scenario.slow_link)
            content = write(_as_rank(bent, rank, scenario.hosts, skew[rank]))
        if rank in damaged and content:
            content = rng.randbytes(min(len(content), 1 << 16))
        (run / f"{host_name(rank)}.xplane.pb").write_bytes(content)
    truth = Truth(scenario, skew, [host_name(rank) for rank in damaged])
    (folder / "truth.json").write_text(json.dumps(asdict(truth), indent=1))
    return truth


def recorded_rank() -> HostTrace | None:
    """The recording to bend; None where it is not at hand."""
    path = shared_file(BASE)
    if path is None:
        return None
    from stepscope.formats.kineto.reader import read as read_kineto

    return read_kineto(path.read_bytes(), str(path), "base")


# ---- a drawn rank ----------------------------------------------------------------------------------------------------


def drawn_rank(steps: int = 3, kernels: int = 6) -> HostTrace:
    """One rank on a GPU: in each step of 50 ms some kernels, then two all-reduces, the first longer than the second."""
    builder = TraceBuilder("drawn", _START_UNIX_NS)
    builder.plane("/host:CPU", PlaneKind.HOST, stats={"rank": 0, "world_size": 2})
    thread = builder.line(0, "python")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU), "stream 7", kind=LineKind.STREAM)
    for step in range(steps):
        start = step * 50 * PS_PER_MS
        facts = {"step_num": step}
        thread.event(f"ProfilerStep#{step}", start, 49 * PS_PER_MS, EventKind.STEP_MARK, facts)
        for at in range(kernels):
            stream.event(f"gemm_{at}", start + (1 + 5 * at) * PS_PER_MS, 4 * PS_PER_MS, EventKind.KERNEL)
        for at, elements in enumerate((4_000_000, 500_000)):
            about = {"Collective name": "allreduce", "In msg nelems": elements, "dtype": "Float", "Group size": 2}
            begin = start + (32 + 8 * at) * PS_PER_MS
            stream.event(
                "ncclDevKernel_AllReduce_Sum_f32", begin, (6 - 4 * at) * PS_PER_MS, EventKind.COLLECTIVE, about
            )
    return builder.build()


# ---- bending ---------------------------------------------------------------------------------------------------------


def _collective_bounds(trace: HostTrace) -> I64:
    """Start and end of the collectives that follow each other, in ps: int64 of shape (n, 2)."""
    rows = collective_rows(trace)
    start = trace.events.start_ps[rows]
    order = np.argsort(start, kind="stable")
    start, end = start[order], (start + trace.events.duration_ps[rows])[order]
    apart = np.append(True, start[1:] >= np.maximum.accumulate(end)[:-1]) & (end > start)
    return np.stack([start[apart], end[apart]], axis=1)


def _first_of_steps(trace: HostTrace, bounds: I64) -> list[int]:
    """The first collective of each step."""
    firsts = np.searchsorted(bounds[:, 0], steps_of(trace).start_ps)
    return [int(at) for at in dict.fromkeys(firsts.tolist()) if at < len(bounds)]


def _delays(scenario: Scenario, collectives: int, firsts: Sequence[int]) -> I64:
    """By how much each rank comes late to each collective, in ps: int64 of shape (hosts, collectives)."""
    rng = np.random.default_rng(scenario.seed)
    late = rng.exponential(scenario.jitter_us * 1e6, (scenario.hosts, collectives)).astype(np.int64)
    if scenario.straggler is not None:
        late[scenario.straggler, firsts] += round(scenario.straggler_ms * PS_PER_MS)
    return late


def _leaves(scenario: Scenario, bounds: I64) -> I64:
    """By how much later than the first each rank leaves each collective, in ps: int64 of shape (hosts, collectives)."""
    rng = np.random.default_rng(scenario.seed + 1)
    gaps = np.append(bounds[1:, 0] - bounds[:-1, 1], PS_PER_MS)
    leaves = rng.exponential(scenario.leave_us * 1e6, (scenario.hosts, len(bounds))).astype(np.int64)
    return np.minimum(leaves, gaps // 2)  # the rank is back in time for the next


def bend(trace: HostTrace, bounds: I64, before: I64, inside: I64, slow_link: float = 1.0) -> HostTrace:
    """The trace with time added before and inside its collectives.

    Args:
        bounds: start and end of each collective.
        before, inside: what is added to each, in ps.
        slow_link: the factor of their recorded durations.
    """
    transfer = np.round((bounds[:, 1] - bounds[:, 0]) * (slow_link - 1)).astype(np.int64)
    added = np.stack([before, inside + transfer], axis=1).reshape(-1)
    old = np.concatenate([[0], bounds.reshape(-1)])
    new = np.concatenate([[0], bounds.reshape(-1) + np.cumsum(added)])
    start = trace.events.start_ps
    end = start + trace.events.duration_ps
    moved = _interpolate(start, old, new)
    events = replace(trace.events, start_ps=moved, duration_ps=_interpolate(end, old, new) - moved)
    return replace(trace, events=events, _derived={})


def _interpolate(times: I64, old: I64, new: I64) -> I64:
    """Times on the bent axis; behind the last point they are shifted.  Order is kept, so events stay nested."""
    last = np.int64(times.max(initial=0) + 1)
    shift = new[-1] - old[-1]
    old, new = np.append(old, old[-1] + last), np.append(new, old[-1] + last + shift)
    at = np.clip(np.searchsorted(old, times, side="right") - 1, 0, len(old) - 2)
    share = (times - old[at]) / np.maximum(old[at + 1] - old[at], 1)
    return new[at] + np.round(share * (new[at + 1] - new[at])).astype(np.int64)


def _as_rank(trace: HostTrace, rank: int, world: int, skew_ns: int) -> HostTrace:
    """The trace as that of a rank, by a clock that is wrong."""
    stats = trace.plane_stats
    value = stats.value.copy()
    names = [trace.strings[row] for row in stats.name.tolist()]
    for at, name in enumerate(names):
        if name in ("rank", "world_size") and stats.tag[at] in (StatTag.INT, StatTag.UINT):
            value[at] = rank if name == "rank" else world
    return replace(
        trace,
        host=host_name(rank),
        plane_stats=replace(stats, value=value),
        start_unix_ns=(trace.start_unix_ns or _START_UNIX_NS) + skew_ns,
        _derived={},
    )


# ---- more steps ------------------------------------------------------------------------------------------------------

_IDS = ("External id", "Record function id", "Ev Idx", "correlation_id", "Sequence number", "fwdbwd_id")
"""Stats that link events of one repetition."""

_STEP_NAME = re.compile(r"(.*#)([0-9]+)")


def repeat_steps(trace: HostTrace, steps: int) -> HostTrace:
    """The trace with its steps again and again, until there are as many; they are numbered on."""
    count = len(steps_of(trace).number)
    times = -(-steps // max(count, 1))
    if times <= 1:
        return trace
    events = trace.events
    period = int((events.start_ps + events.duration_ps).max()) + PS_PER_MS
    rows = np.tile(np.arange(len(events)), times)
    turn = np.repeat(np.arange(times), len(events))
    repeated, _ = take_events(trace, rows, events.start_ps[rows] + turn * period, events.duration_ps[rows])
    turn = repeated.events.start_ps // period
    return _number_on(replace(repeated, event_stats=_new_ids(repeated, turn, count)), turn, count)


def _new_ids(trace: HostTrace, turn: I64, steps: int) -> Stats:
    """The stats of events with ids of their own in each repetition, and with the numbers of their steps."""
    stats = trace.event_stats
    turn_of_stat = np.repeat(turn, np.diff(stats.offsets))
    ids = np.isin(stats.name, [trace.strings.find(name) for name in _IDS]) & (stats.value > 0)
    numbers = stats.name == trace.strings.find("step_num")
    added = np.where(ids, turn_of_stat << 26, 0) + np.where(numbers, turn_of_stat * steps, 0)
    return replace(stats, value=stats.value + added)


def _number_on(trace: HostTrace, turn: I64, steps: int) -> HostTrace:
    """The trace whose steps have another number in their name in each repetition."""
    strings, types, of_event = trace.strings, trace.event_types, trace.events.type.copy()
    for old in np.unique(of_event).tolist():
        name = _STEP_NAME.fullmatch(trace.strings[types.name[old]])
        if not name:
            continue
        for at in range(1, int(turn.max()) + 1):
            strings, text = strings.add_text(f"{name[1]}{int(name[2]) + at * steps}".encode())
            of_event[(trace.events.type == old) & (turn == at)] = len(types)
            types = _add_type(types, old, text)
    stats = trace.type_stats
    offsets = np.append(stats.offsets, np.full(len(types) - len(trace.event_types), stats.offsets[-1]))
    return replace(
        trace,
        strings=strings,
        event_types=types,
        type_stats=replace(stats, offsets=offsets),
        events=replace(trace.events, type=of_event),
        _derived={},
    )


def _add_type(types: EventTypes, like: int, name: int) -> EventTypes:
    """The table with one more type: another one's, under a name of its own."""
    columns = {
        each.name: np.append(getattr(types, each.name), getattr(types, each.name)[like]) for each in fields(types)
    }
    columns["name"][-1] = name
    return EventTypes(**columns)


def main() -> None:
    """Makes a session."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--base", type=Path, help="the rank to bend, as *.xplane.pb")
    for name, default in asdict(Scenario(hosts=8)).items():
        kind = int if name in ("hosts", "steps", "straggler", "damaged", "seed") else float
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default)
    options = vars(parser.parse_args())
    folder, path = options.pop("folder"), options.pop("base")
    base = read(path.read_bytes(), str(path), "base") if path else recorded_rank()
    truth = make_session(folder, Scenario(**options), base)
    print(f"{truth.scenario.hosts} hosts in {folder}, {len(truth.damaged)} of them damaged")


if __name__ == "__main__":
    main()
