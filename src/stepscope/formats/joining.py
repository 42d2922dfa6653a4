"""Joins sessions that are parts of one recording: a folder for each rank, or one for each process, seconds apart.

    logs/rank_0/STAMP.pt.trace.json.gz, logs/rank_1/STAMP.pt.trace.json.gz        ranks 0 and 1
    plugins/profile/2026_08_20_10_00_00/a.xplane.pb, .../2026_08_20_10_00_02/b.xplane.pb    hosts a and b

TensorFlow and JAX name a folder by the second in which a process saves its profile, so that processes which save theirs
a moment apart have a folder each.  Processes of one machine recorded at the same time, captures of one process did
not.  Only a watch records one process twice at once: what came before a trigger ends within the window after it.  Its
ranks write into one folder, so what it has kept is joined with nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from stepscope.errors import Problem, counted
from stepscope.formats import store
from stepscope.formats.base import Format
from stepscope.formats.candidates import TIMED_NAME, Candidate, Found
from stepscope.formats.naming import natural_key, printable
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.workers import without_process

MOST_SECONDS_APART = 60
"""Folders of processes that began and ended to record at one step: they differ by how long each takes to save its
profile.  Ranks that save into one folder are suspected ten minutes apart; here no name says that they belong together.
"""
MOST_SECONDS_OF_RANKS = 600
"""Spans of numbered ranks: writing a large trace takes minutes."""

_RANK_FOLDER = Pattern(
    r"(?i)(?P<before>(?:.*[-_.])?)(?P<word>(?:(?:local|global)_)?(?:rank|worker|host|node|proc(?:ess)?|gpu|npu|device"
    r"|task|replica|tp|dp|pp))[-_.]?(?P<number>\d{1,6})"
)
_ASCEND = Pattern(r".+_\d+_\d{14,17}_ascend_pt")
_NAME_OF_ASCEND = Pattern(r"(?P<worker>.+_\d+)_\d{14,17}_ascend_pt")


class _Member(NamedTuple):
    """A candidate, and what tells it from the others of its recording.

    Attributes:
        ranks: the numbers in the names of its folders; empty if they have none.
        hosts: names of its machines.
    """

    candidate: Candidate
    ranks: str
    hosts: frozenset[str]


def join_ranks(found: Iterable[Candidate]) -> list[Candidate]:
    """The candidates, those of one recording as one."""
    groups: dict[tuple[str, int, str], list[_Member]] = {}
    alone: list[Candidate] = []
    for each in found:
        shape, ranks = _shape_of(each.path)
        if shape == each.path or each.is_watched:
            alone.append(each)
            continue
        hosts = frozenset(without_process(file.worker) for file in each.files)
        key = shape, each.order.span, each.files[0].format.name
        groups.setdefault(key, []).append(_Member(each, ranks, hosts))
    return [*alone, *(_join(members) for group in groups.values() for members in _split(group))]


def _shape_of(path: str) -> tuple[str, str]:
    """A folder's path without ranks and times, and the ranks in it."""
    ranks: list[str] = []
    shape: list[str] = []
    for part in path.split("/"):
        if rank := _RANK_FOLDER.fullmatch(part):
            ranks.append(rank["word"].lower() + rank["number"])
            part = f"{rank['before']}{rank['word']}#"
        elif _ASCEND.fullmatch(part):
            ranks.append(part)
            part = "#_ascend_pt"
        elif shape[-2:] == ["plugins", "profile"] and TIMED_NAME.fullmatch(part):
            part = "@"
        shape.append(part)
    return "/".join(shape), "/".join(ranks)


def _split(group: list[_Member]) -> list[list[_Member]]:
    """The recordings of a group: each has a rank or a host once, and lies within the time that its ranks may differ."""
    if len({member.ranks for member in group}) == len(group) and group[0].ranks:
        return [group]  # one recording of each rank: copying may have changed the times of the files
    recordings: list[list[_Member]] = []
    for member in sorted(group, key=lambda each: each.candidate.order):
        last = recordings[-1] if recordings else []
        if last and _belongs(member, last):
            last.append(member)
        else:
            recordings.append([member])
    return recordings


def _belongs(member: _Member, recording: list[_Member]) -> bool:
    if member.ranks:
        is_new, most = all(member.ranks != each.ranks for each in recording), MOST_SECONDS_OF_RANKS
    else:
        likes = [each for each in recording if member.hosts & each.hosts]
        is_new = "" not in member.hosts and _at_once(member, likes)
        most = MOST_SECONDS_APART
    first, own = (_seconds(each.candidate.order.moment) for each in (recording[0], member))
    return is_new and first is not None and own is not None and own - first <= most


def _at_once(member: _Member, likes: list[_Member]) -> bool:
    """Whether a machine recorded while others of its name did: then they are several of its processes.  What is not
    known to overlap was recorded one after the other."""
    if not likes:
        return True
    spans = [_span_of(file.format, file.identity) for each in (member, *likes) for file in each.candidate.files]
    known = [span for span in spans if span is not None]
    return len(known) == len(spans) and max(begin for begin, _ in known) < min(end for _, end in known)


@lru_cache(maxsize=4096)
def _span_of(fmt: Format, identity: store.Identity) -> tuple[int, int] | None:
    return fmt.recorded_span(identity.path)


def _seconds(moment: str) -> int | None:
    """Seconds of a moment, on a clock without time zones; None if it is unknown."""
    import calendar  # with `locale` and `datetime`: only where there are several files

    try:
        return calendar.timegm(time.strptime(moment, "%Y%m%d%H%M%S"))
    except ValueError:
        return None


def _join(members: list[_Member]) -> Candidate:
    """One candidate of all members; the first in time gives its name and place."""
    first = members[0].candidate
    if len(members) == 1:
        return first
    ordered = sorted(members, key=lambda member: natural_key(member.candidate.path))
    files = [file for member in ordered for file in _named_by_folder(member)]
    newest = max(member.candidate.order for member in members)
    folders = tuple(member.candidate.path for member in ordered)
    return first._replace(
        order=newest._replace(run=first.order.run),
        run=_shared_name(ordered),
        files=files,
        captures=tuple(file for member in ordered for file in member.candidate.captures),
        joined=folders,
        problems=(*first.problems, _note_joined(first.path, len(folders), _apart(members))),
    )


def _named_by_folder(member: _Member) -> list[Found]:
    """The files of a member, named by its rank where its folder has one."""
    if not member.ranks:
        return member.candidate.files
    ascend = _NAME_OF_ASCEND.fullmatch(member.ranks)
    rank = ascend["worker"] if ascend else re.sub(r"(\d+)", r"_\1", member.ranks).replace("__", "_")
    alone = len(member.candidate.files) == 1
    return [file._replace(worker=rank if alone else f"{rank}/{file.worker}") for file in member.candidate.files]


def _shared_name(members: list[_Member]) -> str:
    """What the names of the runs have in common, up to the part that differs.  If that is nothing, the folder
    that holds those of the ranks, or else the name of the first run."""
    first = members[0]
    parts = [member.candidate.run.split("/") for member in members]
    shared = [names[0] for names in zip(*parts, strict=False) if len(set(names)) == 1]
    if shared and len(shared) < len(parts[0]):
        return "/".join(shared)
    above = store.parts(first.candidate.path)[:-1]
    return printable(above[-1]) if first.ranks and above and "/" not in first.ranks else first.candidate.run


def _apart(members: list[_Member]) -> int | None:
    known = [moment for each in members if (moment := _seconds(each.candidate.order.moment)) is not None]
    return max(known) - min(known) if len(known) == len(members) else None


def _note_joined(path: str, count: int, seconds: int | None) -> Problem:
    apart = "" if seconds is None else f", written within {counted(seconds, 'second')},"
    return Problem(
        "joined",
        f"{count} folders{apart} are read as one recording of as many processes",
        path=store.parent(path) or path,
        hint="give the path of one folder to read it alone",
    )
