"""What the processes of a trace are, where their rows have no category that says it.

PyTorch's own exporter of long ago, torch_npu and others tell by the name of a process what its rows are: calls of the
host, work of a device, or what a tool has added up.  Their rows get the category that Kineto would have given them, and
go to the process and stream that Kineto would have drawn them on.  What comes after is then one for all.

Rows of processes that are not known are counted: nothing is said of a device that may be there.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from stepscope.errors import Problem, counted
from stepscope.formats.kineto.classify import NPU_COLLECTIVE, NPU_TASK, NPU_WAIT, SUMS, TF1_DISPATCH, TF1_OP, is_known
from stepscope.formats.kineto.document import Raw
from stepscope.formats.kineto.events import is_phase
from stepscope.formats.kineto.old_ranges import tell_ranges
from stepscope.formats.xspace import schema
from stepscope.model import PlaneKind, StatTag
from stepscope.model.arrays import Mask, distinct, number_pairs
from stepscope.model.stat_names import CORRELATION_ID
from stepscope.records import dataclass
from stepscope.vocabulary.devices import IDLE_NPU_TASK

UNKNOWN_ROWS = "unknown-rows"
"""The code of the problem that counts rows which are not understood."""

_OPS = "cpu_op"
_STREAM = "stream of tensorflow 1"
_OF_STREAM = re.compile(r"/(?:device:)?\w+:(\d+)/stream:(\w+) Compute")
_ALL_STREAMS = "all"
_MOVED = re.compile(r"^edge_\d+_")
_COPY = re.compile(r"(?i)memcpy")
_ROLES = tuple(
    (re.compile(name), category)
    for name, category in (
        # PyTorch until 1.7; the thread of work on a device is the device's number.
        (r"CPU functions", _OPS),
        (r"(?:CUDA|GPU) functions", "kernel"),
        # torch_npu and MindSpore.
        (r"Ascend Hardware|NPU(?: \d+)?", NPU_TASK),
        (r"Communication|HCCL", NPU_COLLECTIVE),
        (r"CANN", "privateuse1_runtime"),
        (r"MindSpore", _OPS),
        (r"Overlap Analysis|AI Core Freq|Step Trace", SUMS),
        # The timeline of TensorFlow 1, a process for each device and each stream; the last repeat what streams show.
        # Ops of another device than the CPU are its host's dispatch of them.
        (r"/job:\S+/(?:device:)?(?i:cpu):\d+ Compute", TF1_OP),
        (r"/job:\S+/(?:device:)?\w+:\d+ Compute", TF1_DISPATCH),
        (r"/(?:device:)?\w+:\d+/stream:\w+ Compute", _STREAM),
        (r"/(?:device:)?\w+:\d+/memcpy Compute", SUMS),
    )
)
_OF_TF1 = (TF1_OP, TF1_DISPATCH)
_OF_NPU = (NPU_TASK, NPU_COLLECTIVE)
_PLANE = re.compile(r"Plane \d+")
_NUMBER = re.compile(r"(\d{1,9})$")
_PS_OF_US = 1_000_000
_MOST_NAMED = 3  # processes of a message


@dataclass(frozen=True)
class Strange:
    """A process that holds nothing of a known kind: its whole events, and how long they last together."""

    name: str
    rows: int
    ms: float


@dataclass(frozen=True)
class Processes:
    """What is known of the processes of a file.

    Attributes:
        names: what each is called, by its text id.
        strange: those with events of which none is of a known kind, in a file with others that have such; by text id.
        framework: what wrote the file, if its processes tell.
    """

    names: Mapping[int, str]
    strange: Mapping[int, Strange] = field(default_factory=dict)
    framework: str = ""


def sort_rows(raw: Raw, names: Mapping[int, str], threads: Mapping[tuple[int, int], str]) -> Processes:
    """Finds out what the processes are, and places the rows of those with a role, in place.

    Args:
        raw: the rows.
        names: the names of processes in the file.
        threads: the names of threads, by process and thread.
    """
    _, first = number_pairs(raw.pid, raw.cat)
    pairs = [(int(raw.pid[row]), int(raw.cat[row])) for row in first.tolist()]
    called = {pid: names.get(pid) or raw.texts[pid] for pid, _ in pairs}
    known = {cat for cat in {cat for _, cat in pairs} if is_known(raw.texts[cat])}
    roles = {pid: role for pid, name in called.items() if (role := _role_of(name))}
    if roles:
        _place(raw, roles, called, known, threads)
    tell_ranges(raw, [pid for pid, role in roles.items() if role == _OPS])
    understood = {*roles, *(pid for pid, cat in pairs if cat in known)}
    unknown = [(pid, name) for pid, name in called.items() if pid not in understood]
    suspects = [pid for pid, name in unknown if schema.plane_kind(name)[0] == PlaneKind.OTHER]
    framework = "tensorflow" if any(name.startswith("/") and pid in roles for pid, name in called.items()) else ""
    return Processes(called, _find_strange(raw, suspects, called) if understood else {}, framework)


def _role_of(name: str) -> str:
    """The category of the rows of a process by its name; empty if it does not tell."""
    return next((category for pattern, category in _ROLES if pattern.fullmatch(name)), "")


# -- rows of known processes -------------------------------------------------------------------------------------------


def _place(
    raw: Raw,
    roles: Mapping[int, str],
    called: Mapping[int, str],
    known: set[int],
    threads: Mapping[tuple[int, int], str],
) -> None:
    """Gives rows their category, and those of devices the number of the device for their process, in place."""
    silent = is_phase(raw, "XBEbei") & ~np.isin(raw.cat, list(known))
    devices: dict[int, int] = {}
    tasks, parts = np.zeros(len(raw), np.bool_), np.zeros(len(raw), np.bool_)
    streams = [pid for pid, category in roles.items() if category == _STREAM]
    ops = [pid for pid, category in roles.items() if category in _OF_TF1]
    if ops and streams:
        _link_by_name(raw, np.isin(raw.pid, [*ops, *streams]) & silent)
    _place_streams(raw, streams, called, silent)
    for pid, category in roles.items():
        if category == _STREAM:
            continue
        here = raw.pid == pid
        raw.cat[here & silent] = raw.texts.add(category)
        if category == "kernel":
            _place_by_thread(raw, here & ~is_phase(raw, "M"))
        elif category in _OF_NPU:
            if category == NPU_COLLECTIVE:
                parts |= _take_parts(raw, here & silent, pid, threads)
            else:
                _set_sums_aside(raw, here & silent, pid, threads)
                _set_waits_aside(raw, here & silent)
                tasks |= here & silent
            stated = _NUMBER.search(called[pid])
            devices[pid] = int(stated[1]) if stated else sum(roles[each] == category for each in devices)
    _set_repeats_aside(raw, tasks, parts)
    _place_on_one_host(raw, ops)
    for pid, number in devices.items():
        raw.pid[(raw.pid == pid) & ~is_phase(raw, "M")] = raw.texts.add(str(number))


def _place_streams(raw: Raw, streams: Sequence[int], called: Mapping[int, str], silent: Mask) -> None:
    """Rows of processes that are streams go to lines of their device, in place.  The process of all streams repeats
    those of single ones, and counts where a device has no others."""
    stated = {pid: found.groups() for pid in streams if (found := _OF_STREAM.fullmatch(called[pid]))}
    with_single = {device for device, stream in stated.values() if stream != _ALL_STREAMS}
    rows = {pid: (raw.pid == pid) & silent for pid in stated}
    for pid, (device, stream) in stated.items():
        here = rows[pid]
        if stream == _ALL_STREAMS and device in with_single:
            raw.cat[here] = raw.texts.add(SUMS)
            continue
        copies = [name for name in distinct(raw.name[here]).tolist() if _COPY.match(raw.texts[name])]
        raw.cat[here] = raw.texts.add("kernel")
        raw.cat[here & np.isin(raw.name, copies)] = raw.texts.add("gpu_memcpy")
        raw.pid[here], raw.tid[here] = raw.texts.add(device), raw.texts.add(stream)


def _link_by_name(raw: Raw, rows: Mask) -> None:
    """Links work of devices with the ops that started it, in place: both are called after a node of the graph, and a
    copy `edge_7_NODE` after the one whose result it moves.

    The number of that name takes the place of the op's type, which the name of the row repeats.
    """
    row = np.repeat(np.arange(len(raw)), np.diff(raw.stat_offsets))
    is_text = rows[row] & (raw.stat_tag == StatTag.STRING)
    node, kind = (np.flatnonzero(is_text & (raw.stat_name == raw.texts.add(key))) for key in ("name", "op"))
    names, place = np.unique(raw.stat_value[node], return_inverse=True)
    nodes = [raw.texts.add(_MOVED.sub("", raw.texts[name])) for name in names.tolist()]
    of_row = np.full(len(raw), -1, np.int64)
    of_row[row[node]] = np.array(nodes, np.int64)[place]
    kind = kind[of_row[row[kind]] >= 0]
    raw.stat_name[kind] = raw.texts.add(CORRELATION_ID[0])
    raw.stat_tag[kind], raw.stat_value[kind] = StatTag.INT, of_row[row[kind]] + 1


def _place_on_one_host(raw: Raw, pids: Sequence[int]) -> None:
    """Gives the ops of several processes to the first of them, in place: one program ran ops for each device.

    The writer has spread them over lines on which none overlap, device by device, and no line is a thread.  Here they
    go to the first that they fit into, the longest first, all devices together: what an op of one device waits for on
    another is then on its line, and most are on one.
    """
    rows = np.flatnonzero(np.isin(raw.pid, list(pids)) & is_phase(raw, "XBEbei"))
    start = raw.us[rows] * _PS_OF_US + raw.frac_ps[rows]
    end = start + np.maximum(raw.duration_us[rows] * _PS_OF_US + raw.duration_frac_ps[rows], 0)
    bounds, line = list[list[int]](), np.zeros(len(rows), np.int64)  # of each line: where its ops start and end
    for at in np.lexsort((start, start - end)).tolist():  # the ops of one step: thousands at most
        begins, ends = int(start[at]), int(end[at])
        # What is longer lies around an op, beside it, or has a bound inside it: there the op does not fit.
        free = (place for place, each in enumerate(bounds) if bisect_right(each, begins) >= bisect_left(each, ends))
        line[at] = next(free, len(bounds))
        if line[at] == len(bounds):
            bounds.append([])
        insort(bounds[line[at]], begins)
        insort(bounds[line[at]], ends)
    for each in range(len(bounds)):
        raw.tid[rows[line == each]] = raw.texts.add(str(each))
    for pid in pids[1:]:
        raw.pid[(raw.pid == pid) & ~is_phase(raw, "M")] = pids[0]


def _place_by_thread(raw: Raw, rows: Mask) -> None:
    """Work whose thread is the number of its device goes to a stream of that device."""
    raw.pid[rows] = raw.tid[rows]
    raw.tid[rows] = raw.texts.add("0")


def _set_sums_aside(raw: Raw, rows: Mask, pid: int, threads: Mapping[tuple[int, int], str]) -> None:
    """Lines of a device that are no streams add up what streams show, such as the times of iterations."""
    for tid in distinct(raw.tid[rows]).tolist():
        name = threads.get((pid, tid), "")
        if name and not name.startswith(("Stream", "stream")):
            raw.cat[rows & (raw.tid == tid)] = raw.texts.add(SUMS)


def _take_parts(raw: Raw, rows: Mask, pid: int, threads: Mapping[tuple[int, int], str]) -> Mask:
    """The rows of planes, which show the parts of collectives: bool of shape (rows of the file,).  They are set aside
    where other lines of the process show the collectives themselves, a line for each group or one for all."""
    planes = [tid for tid in distinct(raw.tid[rows]).tolist() if _PLANE.fullmatch(threads.get((pid, tid), ""))]
    parts: Mask = rows & np.isin(raw.tid, planes)
    if (rows & ~parts).any():
        raw.cat[parts] = raw.texts.add(SUMS)
    return parts


def _set_repeats_aside(raw: Raw, tasks: Mask, parts: Mask) -> None:
    """Tasks of streams that are parts of collectives are communication, whatever they are called, and planes repeat
    them with the same start and duration.  They are set aside, in place: the process of the collectives has them."""
    if not parts.any():
        return
    rows = np.flatnonzero(tasks | parts)
    start, _ = number_pairs(raw.us[rows], raw.frac_ps[rows])
    duration, _ = number_pairs(raw.duration_us[rows], raw.duration_frac_ps[rows])
    moment, _ = number_pairs(start, duration)
    of_part = parts[rows]
    raw.cat[rows[~of_part & np.isin(moment, moment[of_part])]] = raw.texts.add(SUMS)


def _set_waits_aside(raw: Raw, rows: Mask) -> None:
    """Tasks that compute nothing keep their stream and count for no work on it."""
    names = distinct(raw.name[rows]).tolist()
    idle = [name for name in names if IDLE_NPU_TASK.match(raw.texts[name])]
    raw.cat[rows & np.isin(raw.name, idle)] = raw.texts.add(NPU_WAIT)


# -- rows of others ----------------------------------------------------------------------------------------------------


def _find_strange(raw: Raw, suspects: Sequence[int], called: Mapping[int, str]) -> dict[int, Strange]:
    """The processes among the suspects that have whole events."""
    if not suspects:
        return {}
    unknown = [cat for cat in distinct(raw.cat).tolist() if not is_known(raw.texts[cat])]
    rows = np.flatnonzero(np.isin(raw.pid, suspects) & np.isin(raw.cat, unknown) & is_phase(raw, "X"))
    found = {}
    for pid in distinct(raw.pid[rows]).tolist():
        own = raw.duration_us[rows[raw.pid[rows] == pid]]
        found[pid] = Strange(called[pid], len(own), float(own.sum()) / 1e3)
    return found


def count_unknown(processes: Processes, source: str) -> list[Problem]:
    """The problem that counts the rows of strange processes; none without any."""
    strange = sorted(processes.strange.values(), key=lambda each: -each.ms)
    if not strange:
        return []
    named = "; ".join(
        f"{counted(each.rows, 'row')} of the process {each.name!r}, {each.ms:,.1f} ms" for each in strange[:_MOST_NAMED]
    )
    more = f"; and {len(strange) - _MOST_NAMED:,} more processes" if len(strange) > _MOST_NAMED else ""
    return [
        Problem(
            UNKNOWN_ROWS,
            f"rows that are not understood: {named}{more}",
            path=source,
            kept="these, on lines of their own that count for no host and no device",
            lost="whether they are work of a device",
            hint="what devices do is not known from this recording",
        )
    ]
