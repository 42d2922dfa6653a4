"""Finds profiles whose names do not say what they are: by a look at their first bytes.

Names that a format may use are looked at (`Format.may_hold`), and all others where these hold nothing.  Of very many,
those are left out that look like others which are none, such as the thousand results that a program keeps as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, islice

from stepscope.errors import InputError, Problem, counted
from stepscope.formats import store
from stepscope.formats.base import FORMATS, Format, added_formats, format_of, formats_that_may_hold
from stepscope.formats.candidates import Candidate, Found, Order, describe_file, drop_packed_copies, written_moment
from stepscope.formats.form import JobPlace
from stepscope.formats.joining import MOST_SECONDS_APART
from stepscope.formats.naming import printable
from stepscope.formats.no_profile import leftover_label
from stepscope.formats.sniffing import certain_format

MAX_LOOKS = 1024
"""Files of this machine that are looked at: one takes some ten microseconds."""
MAX_REMOTE_LOOKS = 64
_SAMPLES = 3  # files of one shape that are looked at first
_MOST_KNOWN = 10_000

_RANK = re.compile(
    r"(?i)(?<![a-z])((?:local|global)?_?(?:rank|worker|host|node|proc(?:ess)?|gpu|npu|device|tp|dp|pp|ep)[-_.]?)(\d+)"
)
_NUMBER = re.compile(r"\d+")
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")

_Known = tuple[Format, JobPlace | None]  # what it is, and its place in a job
_Sure = tuple[store.Entry, Format, JobPlace | None]
_Unknown = tuple[store.Entry, tuple[Format, ...]]  # a file, and what it may be
_known: dict[tuple[store.Identity, tuple[str, ...]], _Known | None] = {}


def find_by_content(
    root: str, folders: Iterable[store.Folder], problems: list[Problem], whatever_name: bool = False
) -> list[Candidate]:
    """The sessions of files that are profiles by content alone.  Files of ranks of one job are one session.

    Args:
        root: where the search began.
        folders: the folders to look into.
        problems: gets what could not be read, and that a limit was reached.
        whatever_name: look at the files whose names no format may use, rather than at those that one may.
    """
    shapes: dict[tuple[str, str], list[_Unknown]] = {}
    for folder in folders:
        for entry in folder.files:
            if may := _formats_of_unknown(entry.name, whatever_name):
                shapes.setdefault(_shape_of(entry, root), []).append((entry, may))
    sure: list[_Sure] = []
    left = MAX_REMOTE_LOOKS if store.is_remote(root) else MAX_LOOKS
    total = sum(map(len, shapes.values()))
    promising: list[list[_Unknown]] = []
    others: list[list[_Unknown]] = []
    looked = 0
    for entries in shapes.values():
        samples = entries[: min(_SAMPLES, left - looked)]
        found = [(entry, *known) for entry, may in samples if (known := _look(entry, may, problems))]
        looked += len(samples)
        (promising if found else others).append(entries[len(samples) :])
        sure += found
    for entry, may in islice(chain(*promising, *others), left - looked):
        looked += 1
        if known := _look(entry, may, problems):
            sure.append((entry, *known))
    if looked < total:
        names = "whose names say nothing" if whatever_name else "that may be profiles by their endings"
        problems.append(_note_limit(root, looked, total, names))
    return _group(root, sure, problems)


def _formats_of_unknown(name: str, whatever_name: bool) -> tuple[Format, ...]:
    """What a file may be whose name does not say that it is a profile; nothing where its name says that it is none."""
    claimed = format_of(name)
    if claimed is not None and claimed.in_folders:
        return ()
    may = formats_that_may_hold(name)
    if not whatever_name:
        return may
    return () if may or claimed or leftover_label(name) else (*FORMATS, *added_formats())


def _folder_of(file: store.Entry | Found, root: str) -> str:
    """A file's folder, written as the search found it."""
    return file.path.removesuffix(file.name).rstrip("/") or root


def _shape_of(entry: store.Entry, root: str) -> tuple[str, str]:
    """A file's folder, and its name without numbers."""
    return _folder_of(entry, root), _NUMBER.sub("#", entry.name)


def _note_limit(root: str, looked: int, total: int, names: str) -> Problem:
    return Problem(
        code="search-bound",
        reason=f"only {looked:,} of {total:,} files {names} were checked for profiles",
        path=root,
        hint="give a path closer to the profiles, or the file itself",
    )


def _look(entry: store.Entry, may: tuple[Format, ...], problems: list[Problem]) -> _Known | None:
    """What a file certainly is, remembered while the file stays what it is: the page searches every few
    seconds."""
    try:
        key = entry.identity or store.identity(entry.path), tuple(fmt.name for fmt in may)
        if key not in _known or not key[0].is_certain:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = certain_format(may, entry.path)
        return _known[key]
    except InputError as error:
        problems.append(error.problem)
        return None


def _group(root: str, sure: list[_Sure], problems: list[Problem]) -> list[Candidate]:
    """Sessions of the files: a file that is no rank of a job is one of its own, as nothing shows what belongs to it."""
    found, places = [], {}
    for entry, fmt, place in sure:
        try:
            found.append(describe_file(entry, fmt))
        except InputError as error:
            problems.append(error.problem)
        if place is not None:
            places[entry.path] = place
    groups: dict[tuple[str, str, str], list[Found]] = {}
    for file in drop_packed_copies(found):
        groups.setdefault((_folder_of(file, root), file.format.name, _job_of(file)), []).append(file)
    alone = [files[0] for files in groups.values() if len(files) == 1 and files[0].path in places]
    jobs = _jobs_by_content(alone, places, root)
    joined = {file.path for job in jobs for file in job}
    kept = [_candidate(root, key[0], files) for key, files in groups.items() if files[0].path not in joined]
    for job in jobs:
        note = _note_joined(_folder_of(job[0], root), [places[file.path] for file in job])
        kept.append(_candidate(root, _folder_of(job[0], root), job)._replace(problems=(note,)))
    return kept


def _jobs_by_content(files: Iterable[Found], places: Mapping[str, JobPlace], root: str) -> list[list[Found]]:
    """The files that are ranks of one job by what they state: of one folder, each rank once, and begun together.  Of
    those that do not state when they began, the names differ in numbers alone."""
    jobs: dict[tuple[str, str, str, int], list[Found]] = {}
    for file in files:
        place = places[file.path]
        name = _NUMBER.sub("#", file.name) if place.begin_s is None else ""
        jobs.setdefault((_folder_of(file, root), file.format.name, name, place.size), []).append(file)
    recordings = chain.from_iterable(_split(job, places) if not key[2] else [job] for key, job in jobs.items())
    return [
        sorted(job, key=lambda file: places[file.path].rank)
        for job in recordings
        if len(job) > 1 and len({places[file.path].rank for file in job}) == len(job)
    ]


def _split(job: list[Found], places: Mapping[str, JobPlace]) -> list[list[Found]]:
    """The recordings of a job, one after the other: each has a rank once, and its ranks begin at one step."""
    recordings: list[list[Found]] = []
    first, ranks = 0.0, set[int]()
    for begin, rank, file in sorted((places[file.path].begin_s or 0.0, places[file.path].rank, file) for file in job):
        if not recordings or rank in ranks or begin - first > MOST_SECONDS_APART:
            first, ranks = begin, set()
            recordings.append([])
        recordings[-1].append(file)
        ranks.add(rank)
    return recordings


def _note_joined(folder: str, places: list[JobPlace]) -> Problem:
    begins = [place.begin_s for place in places if place.begin_s is not None]
    begun = f", begun within {max(begins) - min(begins):.2g} s," if len(begins) == len(places) else ""
    return Problem(
        "joined",
        f"{len(places)} files that state {len(places)} of {counted(places[0].size, 'rank')}{begun} are read as one"
        " recording",
        path=folder,
        hint="give the path of one file to read it alone",
    )


def _job_of(file: Found) -> str:
    """The name without what tells the ranks of one job apart."""
    pattern = _LAST_NUMBER if file.format.is_of_job else _RANK
    return pattern.sub("#", file.name)


def _candidate(root: str, folder: str, files: list[Found]) -> Candidate:
    above = store.parts(folder if len(files) > 1 else files[0].path)
    run = printable("/".join(above[len(store.parts(root)) :]) or above[-1])
    moment, rest = written_moment("", files)
    return Candidate(Order(moment, rest, run, 1), run, folder, files, is_by_content=True)
