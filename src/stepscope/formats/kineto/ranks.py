"""Tells the processes of a file apart: traces of several ranks that a tool has merged into one.

A process has its own ids, so that equal ids of two mean nothing.  Work of a device belongs to the process whose launch
with the same id came shortly before: two processes number their launches alike, and may use devices of one number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from stepscope.errors import Problem
from stepscope.formats.kineto.classify import LineType, is_op_category, place_of
from stepscope.formats.kineto.document import Raw
from stepscope.formats.kineto.events import is_phase
from stepscope.model import StatTag
from stepscope.model.arrays import I32, I64, Mask, distinct, number_pairs, offsets_of, run_rows
from stepscope.model.stat_names import CORRELATION_ID
from stepscope.records import dataclass

_RANK = re.compile(r"(?i)rank[\s_:#-]*(\d{1,9})|^\[?(\d{1,6})\]?[_:/-](?=.)")
_LEAST_SHARE = 0.01  # of the ops of the largest process: less is a stray row
_OWNED = 0.8  # of the work of a stream whose launches tell that it is a process's: the rest goes there too
_EARLIEST_US = 1000  # before its launch, as clocks of devices are off
_NOBODY = -1
_MOST_RANKS = 1 << 30  # larger numbers are damage
_BASE = "baseTimeNanoseconds"


@dataclass(frozen=True)
class FileProcess:
    """One process of a file.

    Attributes:
        name: of the host that it is read as.
        rank: in its job; -1 if unknown.
        rows: the rows of the file that are its own, ascending.
        metadata: what the file states of it outside of the events, if it is a JSON document of its own.
    """

    name: str
    rank: int
    rows: I64
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToldApart:
    """The processes of a file, and how their ranks are known."""

    processes: tuple[FileProcess, ...]
    ranks_from: str


def of_documents(raw: Raw) -> ToldApart | None:
    """The ranks of a file that holds a JSON document of each, one after the other; None if it is no such file.

    Their processes may have equal numbers, as in containers.
    """
    stated = [(begin, metadata, _rank_of(metadata)) for begin, metadata in raw.documents]
    ranks = {rank for _, _, rank in stated}
    if len(stated) < 2 or len(ranks) < len(stated) or _NOBODY in ranks:
        return None
    ends = [*(begin for begin, _, _ in stated[1:]), len(raw)]
    processes = [
        FileProcess(f"rank {rank}", rank, np.arange(begin, end), _on_the_clock_of(raw, metadata))
        for (begin, metadata, rank), end in zip(stated, ends, strict=True)
    ]
    return ToldApart(tuple(sorted(processes, key=lambda each: each.rank)), "ranks as each part of the file states it")


def _rank_of(metadata: Mapping[str, Any]) -> int:
    job = metadata.get("distributedInfo")
    rank = job.get("rank") if isinstance(job, dict) else None
    return rank if isinstance(rank, int) and 0 <= rank < _MOST_RANKS else _NOBODY


def _on_the_clock_of(raw: Raw, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """What one document states; the times of all have been made to count from the zero of the first."""
    base = raw.metadata.get(_BASE)
    return {**metadata, _BASE: base} if isinstance(metadata.get(_BASE), int) and isinstance(base, int) else metadata


def find_owners(raw: Raw, names: Mapping[int, str]) -> list[list[int]]:
    """The processes whose ops a file holds, as lists of text ids of one process each; empty if there is only one.

    Args:
        raw: the rows.
        names: the names of processes in the file.
    """
    _, first = number_pairs(raw.pid, raw.cat)
    ops = [(int(raw.pid[row]), int(raw.cat[row])) for row in first.tolist() if is_op_category(raw.texts[raw.cat[row]])]
    if len({pid for pid, _ in ops}) < 2:
        return []
    is_ops = np.isin(raw.cat, [cat for _, cat in ops]) & is_phase(raw, "XB")
    counts = np.bincount(raw.pid[is_ops], minlength=1)
    owners = [pid for pid in dict.fromkeys(pid for pid, _ in ops) if counts[pid] >= _LEAST_SHARE * counts.max()]
    labels = {pid: _label_of(raw.texts[pid], names.get(pid, "")) for pid in owners}
    if all(labels.values()):
        by_label: dict[str, list[int]] = {}
        for pid, label in labels.items():
            by_label.setdefault(label, []).append(pid)
        groups = list(by_label.values())
    else:
        groups = [[pid] for pid in owners]
    return groups if len(groups) > 1 else []


def _label_of(pid: str, name: str) -> str:
    """The rank that the text of a process or its name tells; empty if neither does."""
    found = _RANK.search(pid) or _RANK.search(name)
    return (found[1] or found[2]).lstrip("0") or "0" if found else ""


def tell_apart(raw: Raw, names: Mapping[int, str], owners: Sequence[Sequence[int]], keys: I32) -> ToldApart:
    """The processes of a file.

    Args:
        raw: the rows, their ids being whole numbers.
        names: the names of processes in the file.
        owners: what `find_owners` returned.
        keys: the canonical name of each text.
    """
    on_device = _rows_on_device(raw)
    owner_of_pid = np.full(len(raw.texts), _NOBODY, np.int32)
    labels = [_label_of(raw.texts[pids[0]], names.get(pids[0], "")) for pids in owners]
    device_pids = distinct(raw.pid[on_device]).tolist()
    for number, pids in enumerate(owners):
        owner_of_pid[list(pids)] = number
    for pid in distinct(raw.pid).tolist():
        label = _label_of(raw.texts[pid], names.get(pid, ""))
        if owner_of_pid[pid] == _NOBODY and label and label in labels:
            owner_of_pid[pid] = labels.index(label)
    owner = owner_of_pid[raw.pid]
    unknown = on_device & (owner == _NOBODY)
    if unknown.any():
        _assign_by_launches(raw, keys, owner, unknown, len(owners))
    devices = _devices_of(raw, owner, on_device, device_pids, len(owners))
    _assign_rest(raw, owner, owner_of_pid)
    ranks, how = _ranks_of(labels, devices)
    processes = [
        FileProcess(
            f"rank {ranks[number]}" if ranks[number] >= 0 else _host_name(raw, names, pids),
            ranks[number],
            np.flatnonzero((owner == number) | (owner == _NOBODY)),
        )
        for number, pids in enumerate(owners)
    ]
    return ToldApart(tuple(sorted(processes, key=lambda each: each.rank)), how)


def _rows_on_device(raw: Raw) -> Mask:
    cats = distinct(raw.cat).tolist()
    places = (LineType.STREAM, LineType.SCOPE, LineType.WAIT)
    found: Mask = np.isin(raw.cat, [cat for cat in cats if place_of(raw.texts[cat]) in places])
    return found & is_phase(raw, "X")


def _host_name(raw: Raw, names: Mapping[int, str], pids: Sequence[int]) -> str:
    return f"{names.get(pids[0]) or 'process'} {raw.texts[pids[0]]}"


# -- work of devices ---------------------------------------------------------------------------------------------------


def _assign_by_launches(raw: Raw, keys: I32, owner: I32, unknown: Mask, count: int) -> None:
    """Gives work of devices to the processes that launched it, in place."""
    ids = _correlation(raw, keys)
    work = np.flatnonzero(unknown)
    before = _owner_before(owner, work, count)
    least = np.full(len(work), np.iinfo(np.int64).max)
    found, is_tied = np.full(len(work), _NOBODY, np.int32), np.zeros(len(work), np.bool_)
    for number in range(count):
        calls = np.flatnonzero((owner == number) & (ids > 0))
        calls = calls[np.argsort(ids[calls], kind="stable")]
        if not len(calls):
            continue
        at = np.minimum(np.searchsorted(ids[calls], ids[work]), len(calls) - 1)
        lag = raw.us[work] - raw.us[calls[at]]
        launched = (ids[calls[at]] == ids[work]) & (ids[work] > 0) & (lag >= -_EARLIEST_US)
        launched &= (before == number) | (before == _NOBODY)
        nearer = launched & (np.abs(lag) < least)
        is_tied = np.where(nearer, False, is_tied | (launched & (np.abs(lag) == least)))
        least[nearer], found[nearer] = np.abs(lag)[nearer], number
    stream, _ = number_pairs(raw.pid[work], raw.tid[work])
    for each in distinct(stream).tolist():
        here = stream == each
        votes = np.bincount(found[here & (found >= 0) & ~is_tied], minlength=count)
        if votes.sum() and votes.max() >= _OWNED * votes.sum():
            found[here] = int(votes.argmax())
    owner[work] = found


def _owner_before(owner: I32, work: I64, count: int) -> I32:
    """The process of the last row before each that is a host's, where a file holds one process after the other; -1
    where their rows alternate: int32 of shape (work,)."""
    hosts = np.flatnonzero(owner != _NOBODY)
    row = owner[hosts]
    if int((row[1:] != row[:-1]).sum()) >= count:
        return np.full(len(work), _NOBODY, np.int32)
    return row[np.maximum(np.searchsorted(hosts, work) - 1, 0)]


def _correlation(raw: Raw, keys: I32) -> I64:
    """The id of each row that joins calls and work, -1 for none: int64 of shape (rows,)."""
    ids = np.full(len(raw), _NOBODY, np.int64)
    is_id = (keys == raw.texts.add(CORRELATION_ID[0]))[raw.stat_name] & (raw.stat_tag == StatTag.INT)
    stats = np.flatnonzero(is_id)
    ids[np.searchsorted(raw.stat_offsets, stats, side="right") - 1] = raw.stat_value[stats]
    return ids


def _devices_of(raw: Raw, owner: I32, on_device: Mask, pids: Sequence[int], count: int) -> list[list[int]]:
    """The numbers of the devices of each process, by the text of their processes."""
    found: list[list[int]] = [[] for _ in range(count)]
    for pid in pids:
        number = re.search(r"(\d{1,9})$", raw.texts[pid])
        if number:
            for each in distinct(owner[on_device & (raw.pid == pid)]).tolist():
                if each != _NOBODY:
                    found[each].append(int(number[1]))
    return found


def _assign_rest(raw: Raw, owner: I32, owner_of_pid: I32) -> None:
    """Gives rows that are no whole events, such as names and arrows, to the process that has most of the others of
    their process, in place.  What is of no process belongs to all."""
    rest = np.flatnonzero(owner == _NOBODY)
    for pid in distinct(raw.pid[rest]).tolist():
        own = owner[raw.pid == pid]
        votes = np.bincount(own[own >= 0], minlength=1)
        if votes.any():
            here = rest[raw.pid[rest] == pid]
            owner[here] = int(votes.argmax())


def _ranks_of(labels: Sequence[str], devices: Sequence[Sequence[int]]) -> tuple[list[int], str]:
    """The rank of each process, -1 if unknown, and how that is known."""
    if all(labels):
        return [int(label) for label in labels], "ranks by the names of the processes"
    alone = [numbers[0] for numbers in devices if len(numbers) == 1]
    if len(set(alone)) == len(devices):
        return alone, "ranks by the numbers of their devices"
    return [_NOBODY] * len(devices), "their ranks were not recorded"


# -- a file for each ---------------------------------------------------------------------------------------------------


def raw_of(raw: Raw, process: FileProcess) -> Raw:
    """The rows of one process.  Texts are shared; the place in a job that the file states is of one process only."""
    rows = process.rows
    counts = np.diff(raw.stat_offsets)[rows]
    stats = run_rows(raw.stat_offsets[rows], counts)
    metadata = process.metadata or raw.metadata
    job = metadata.get("distributedInfo")
    known = {key: value for key, value in job.items() if key != "rank"} if isinstance(job, dict) else {}
    if process.rank >= 0:
        known["rank"] = process.rank
    columns = (
        "phase",
        "flags",
        "cat",
        "name",
        "pid",
        "tid",
        "us",
        "frac_ps",
        "duration_us",
        "duration_frac_ps",
        "flow",
    )
    return replace(
        raw,
        **{name: getattr(raw, name)[rows] for name in columns},
        stat_offsets=offsets_of(counts),
        stat_name=raw.stat_name[stats],
        stat_tag=raw.stat_tag[stats],
        stat_value=raw.stat_value[stats],
        metadata={**metadata, "distributedInfo": known},
        documents=(),
    )


def describe(told: ToldApart, is_damaged: bool, source: str) -> Problem:
    """What is to be said of a file of several processes."""
    names = Counter(process.name for process in told.processes)
    shown = ", ".join(list(names)[:_MOST_SHOWN]) + (", ..." if len(names) > _MOST_SHOWN else "")
    wrote = "; they wrote into it at the same time, which destroyed what both wrote" if is_damaged else ""
    return Problem(
        "several-processes",
        f"the file holds {len(told.processes)} processes, each read as a host: {shown} ({told.ranks_from}){wrote}",
        path=source,
        hint="record each process into a file of its own",
    )


_MOST_SHOWN = 8
