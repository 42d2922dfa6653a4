"""Makes one profile of what the framework's profiler and Stepscope's own tracers recorded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.model import HostTrace
    from stepscope.model.arrays import F64

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.capture import cost
from stepscope.capture.other_process import ConverterProcess, UnableError
from stepscope.capture.report import report
from stepscope.capture.tracers.base import Artifact, Collected
from stepscope.formats.spool.layout import FRAMEWORK_LOST

if TYPE_CHECKING:
    from stepscope.capture.spool import Spool

PROFILE = "xplane.pb"
# The framework records the annotations as well: they are in its profile already.
_FRAMEWORK_PLANES = frozenset({"/host:CPU"})
_PATIENCE_S = 120.0
_BYTES_PER_S = 1e6


def assemble_profile(
    spool: Spool, clock_ns: int, framework: Collected | None, host: str, helper: ConverterProcess, jump_ns: int = 0
) -> Collected:
    """The files to store.

    Args:
        spool: everything that was flushed; it is finished here.
        clock_ns: when the recording ended.
        framework: what the framework's profiler made; None if there is no framework, or if its profiler failed.  The
            profile then holds what Stepscope recorded itself.
        helper: does the work if this process would hold it up, or be held up by it.
        jump_ns: by how much the system's clock was set during the capture.
    """
    first, others = _profile_of(framework)
    error = None if framework is None else framework.error
    for note in _notes(framework, first, host):
        spool.note(note)
    if first is None and error is not None and not others:
        spool.facts(cost.PLANE, {FRAMEWORK_LOST: 1})
    spooled = spool.finish(clock_ns)
    try:
        content = make_profile_in_helper(spooled, first, host, jump_ns, helper)
    except Exception as failure:
        if first is None:
            raise
        report(failure, "adding Stepscope's own tracks")  # an error of ours must not lose the framework's profile
        assert framework is not None
        return framework
    return Collected((Artifact(PROFILE, content), *others), error)


def _profile_of(framework: Collected | None) -> tuple[bytes | Path | None, tuple[Artifact, ...]]:
    """The XSpace that the framework's profiler made, if it did, and its other files, such as PyTorch's JSON."""
    artifacts = framework.artifacts if framework is not None else ()
    if artifacts and artifacts[0].suffix == PROFILE:
        return artifacts[0].content, artifacts[1:]
    return None, artifacts


def _notes(framework: Collected | None, first: bytes | Path | None, host: str) -> Iterator[str]:
    """What the reader of the profile has to know of the framework's part."""
    if framework is None:
        return
    error, others = framework.error, framework.artifacts
    if first is not None:
        yield from framework.notes
        if error is not None:
            yield str(error)
    elif others:
        yield f"{error}; {host}.{others[0].suffix} beside this file holds it"
    elif error is not None:
        yield f"the framework's part of this profile is missing: {error}"


def make_profile_in_helper(
    spooled: bytes, framework: bytes | Path | None, host: str, jump_ns: int, helper: ConverterProcess
) -> bytes | Path:
    """As `make_profile`, by the helper if it is wanted; the profile is a file of its folder then."""
    if helper.is_wanted:
        result = helper.folder / PROFILE
        if isinstance(framework, bytes):
            content, framework = framework, helper.folder / "framework"
            framework.write_bytes(content)
        size = len(spooled) + (framework.stat().st_size if framework is not None else 0)
        words = [str(result), host, str(jump_ns), str(framework or "")]
        with suppress(UnableError):
            helper.run(__name__, words, _PATIENCE_S + size / _BYTES_PER_S, spooled)
            return result
    return make_profile(spooled, framework.read_bytes() if isinstance(framework, Path) else framework, host, jump_ns)


def main(arguments: Sequence[str], spooled: bytes) -> None:
    """Makes a profile.  Another process runs this; see `stepscope.capture.other_process`.

    Args:
        arguments: the path of the result, the host's name, the clock's jump in ns, and the path of the framework's
            profile, which may be empty.
        spooled: what was flushed.
    """
    result, host, jump_ns, framework = arguments
    profile = Path(framework).read_bytes() if framework else None
    Path(result).write_bytes(make_profile(spooled, profile, host, int(jump_ns)))


def make_profile(spooled: bytes, framework: bytes | None, host: str, jump_ns: int) -> bytes:
    """The XSpace of everything that was flushed, and of the framework's own, if there is one.

    Args:
        spooled: with the end record.
        framework: an XSpace.
        host, jump_ns: as for `assemble_profile`.
    """
    from stepscope.formats.spool.reader import parse
    from stepscope.formats.xspace import merge
    from stepscope.formats.xspace.writer import write

    spool = parse(spooled)
    assert spool is not None, "a spool begins with its magic"
    if framework is None:
        if jump_ns:
            spool.notes.append(describe_jump(jump_ns, settled=None))
        return write(spool.trace(host))
    began = merge.start_unix_ns(framework)
    assert spool.unix_ns is not None, "every capture records its start time"
    if jump_ns and began is not None:
        settled = settle_events(framework, spool.trace(host, shift_ns=spool.unix_ns - began))
        spool.notes.append(describe_jump(jump_ns, settled is not None))
        framework = settled or framework
    if began is None:  # an older JAX: its lines count from 1970
        own = spool.trace(host, without=_FRAMEWORK_PLANES)
        own = replace(own, lines=replace(own.lines, start_ns=own.lines.start_ns + spool.unix_ns))
    else:
        own = spool.trace(host, shift_ns=spool.unix_ns - began, without=_FRAMEWORK_PLANES)
    return merge.append_planes(framework, own)


# -- the system's clock was set during the capture -------------------------------------------------------------------
# Stepscope's own tracers read the monotonic clock; frameworks' profilers read the system's.  If that jumps, a step of
# theirs seems to last an hour, or all seem to last a thousandth.  Both record the marks of the steps, and each mark
# tells which moments of the two clocks belong together.

_LEAST_NS = 100_000_000  # a clock that is slewed differs by up to 0.05 % of the time
_SLEWED = 0.001
_ALL_OF_IT = 0.9
_FEWEST_MARKS = 2
_NUMBER = re.compile(r"(\d+)$")
_PS = 1000

Marks = dict[int, tuple[int, int]]
"""The start and the end of each step, in ps, by its number."""


def measure_jump_ns(clock_ns: int, unix_ns: int) -> int:
    """By how much the system's clock was set, if it was; 0 for differences that adjusting its rate makes.

    Args:
        clock_ns, unix_ns: how far the monotonic clock and the system's clock have moved.
    """
    jump_ns = unix_ns - clock_ns
    return jump_ns if abs(jump_ns) > max(_LEAST_NS, round(_SLEWED * clock_ns)) else 0


def describe_jump(jump_ns: int, settled: bool | None) -> str:
    """A sentence for the reader of the profile.

    Args:
        settled: whether the framework's events are on the monotonic clock now; None if there are none.
    """
    way = "forward" if jump_ns > 0 else "back"
    text = f"the system's clock was set {way} by {abs(jump_ns) / 1e9:,.1f} s during this capture"
    if settled is None:
        return f"{text}; steps and events are on the monotonic clock"
    if settled:
        return f"{text}; the framework's events were put on the monotonic clock, by the marks of the steps"
    return f"{text}, and there are too few step marks to correct the framework's times: do not rely on them"


def settle_events(content: bytes, own: HostTrace) -> bytes | None:
    """The framework's profile with its events on the clock of our own; None if the marks do not allow that.

    Args:
        content: the framework's profile, as XSpace.
        own: what Stepscope recorded; its times count from the start of the framework's profile.
    """
    import numpy as np

    from stepscope.formats.xspace.reader import read
    from stepscope.formats.xspace.writer import write
    from stepscope.model.taking import take_events

    trace = read(content, "", "")
    theirs, ours = find_marks(trace), find_marks(own)
    both = sorted(theirs.keys() & ours.keys(), key=lambda number: theirs[number])
    if len(both) < _FEWEST_MARKS:
        return None
    moments = np.array([theirs[number] for number in both], np.float64).reshape(-1)
    settled = np.array([ours[number] for number in both], np.float64).reshape(-1)
    if (np.diff(moments) < 0).any() or (np.diff(settled) < 0).any():  # set back into the time of the capture
        return None

    moments, settled = _split_jump(moments, settled)

    def place(times: F64) -> F64:
        inside = np.interp(times, moments, settled)
        inside = np.where(times < moments[0], settled[0] - (moments[0] - times), inside)
        return np.where(times > moments[-1], settled[-1] + (times - moments[-1]), inside)

    start = place(trace.events.start_ps.astype(np.float64))
    end = place((trace.events.start_ps + trace.events.duration_ps).astype(np.float64))
    start_ps = np.rint(start).astype(np.int64)
    duration_ps = np.maximum(np.rint(end).astype(np.int64) - start_ps, 0)
    return write(take_events(trace, np.arange(len(start_ps)), start_ps, duration_ps)[0])


def _split_jump(moments: F64, settled: F64) -> tuple[F64, F64]:
    """Adds two points where one stretch between marks holds the whole jump: what is near its start counts from there,
    and what is near its end from the end.  Otherwise times between marks are stretched evenly."""
    import numpy as np

    longer = np.diff(moments) - np.diff(settled)
    at = int(longer.argmax())
    length = float(settled[at + 1] - settled[at])
    if longer[at] < _LEAST_NS * _PS or longer[at] < _ALL_OF_IT * longer.sum() or longer[at] < length:
        return moments, settled
    between = np.array([moments[at] + length, moments[at + 1] - length])
    places = np.array([settled[at + 1], settled[at]])
    return np.insert(moments, at + 1, between), np.insert(settled, at + 1, places)


def find_marks(trace: HostTrace) -> Marks:
    """The step marks of a trace's host, each number once: by its stat, or by the end of its name as PyTorch writes.
    Where steps were found, the program's own marks may have the same numbers for others: they do not count."""
    import numpy as np

    from stepscope.model import EventKind, PlaneKind, stat_names

    events = trace.events
    rows = np.flatnonzero(events.kind == EventKind.STEP_MARK)
    rows = rows[trace.planes.kind[trace.lines.plane[events.line[rows]]] == PlaneKind.HOST]
    of_recorder = trace.stat_ints(stat_names.STEP_FOUND, missing=0, rows=rows) > 0
    rows = rows[of_recorder] if of_recorder.any() else rows
    marks: Marks = {}
    for row in rows[np.argsort(events.start_ps[rows], kind="stable")].tolist():
        stat = trace.stats_of_event(row).get("step_num")
        found = _NUMBER.search(trace.name_of(row))
        number = stat if isinstance(stat, int) else int(found[1]) if found else None
        if number is not None:
            start = int(events.start_ps[row])
            marks.setdefault(number, (start, start + int(events.duration_ps[row])))
    return marks
