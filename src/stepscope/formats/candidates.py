"""Sessions while they are put together: files, what their names say, and when they were written."""

from __future__ import annotations

import re
import time
from pathlib import PurePath
from typing import NamedTuple

from stepscope.errors import Problem
from stepscope.formats import store
from stepscope.formats.base import Format
from stepscope.formats.form import NameParts
from stepscope.vocabulary.patterns import Pattern

WATCH_MARKER = "stepscope-watch.json"
"""The name of the file that says of a session that a watch has kept it."""


class Found(NamedTuple):
    """A file that holds a profile, and what its name says.

    Attributes:
        worker: the host, or the empty string.
        stamp: see `NameParts`.
    """

    name: str
    path: str
    format: Format
    identity: store.Identity
    worker: str
    stamp: tuple[int, str]


class Order(NamedTuple):
    """The sort key of a session: `moment` is local time as digits YYYYmmddHHMMSS, the other fields break ties."""

    moment: str
    rest: str
    run: str
    span: int


class Candidate(NamedTuple):
    """A session without its final name.

    Attributes:
        joined: the folders of the candidates that were joined into this one; empty for one as found.
        problems: what is to be said of this session alone.
        is_by_content: no name says that its files are profiles, but their content does.
        is_watched: a watch has kept it.
    """

    order: Order
    run: str
    path: str
    files: list[Found]
    captures: tuple[Found, ...] = ()
    joined: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_by_content: bool = False
    is_watched: bool = False


def describe_file(entry: store.Entry, fmt: Format) -> Found:
    """The file with its identity and the parts of its name.  Raises NotFoundError for a dangling link, AccessError."""
    identity = entry.identity or store.identity(entry.path)
    claimed = fmt.claims(entry.name)
    parts = fmt.name_parts(entry.name) if claimed else NameParts(_stem_of(entry.name))
    return Found(entry.name, entry.path, fmt, identity, *parts)


def _stem_of(name: str) -> str:
    """The name without an ending that is no number: `job.json`, but `dump.0`."""
    path = PurePath(name.removesuffix(".gz"))
    return path.name if path.suffix[1:].isdecimal() else path.stem


def drop_packed_copies(found: list[Found]) -> list[Found]:
    """Leaves out `name.gz` if `name` exists; `gunzip -k` keeps both."""
    unpacked = {file.path for file in found}
    return [file for file in found if not (file.path.endswith(".gz") and file.path.removesuffix(".gz") in unpacked)]


# ---- time ------------------------------------------------------------------------------------------------------------

TIMED_NAME = Pattern(
    r"(20\d\d)[-_.]?(0\d|1[0-2])[-_.]?([0-2]\d|3[01])[-_.T ]?([01]\d|2[0-3])[-_.:]?([0-5]\d)[-_.:]?([0-5]\d)(.*)",
    re.DOTALL,
)
NS_PER_UNIT_BY_DIGITS = {10: 10**9, 13: 10**6, 16: 10**3, 19: 1}


def written_moment(name: str, files: list[Found]) -> tuple[str, str]:
    """When a folder's files were written: local time as 14 digits, and a text that breaks ties.

    A run's name holds local time, so times from other sources are converted to that form.  Sorting the digits as text
    then sorts them by time.
    """
    timed = TIMED_NAME.fullmatch(name)
    if timed:
        *digits, rest = timed.groups()
        return "".join(digits), rest
    known = [moment for file in files if (moment := written_ns(file)) is not None]
    return _local_digits(max(known)) if known else ("", "")


def written_ns(file: Found) -> int | None:
    """When a file was written, in ns since the epoch: its stamp if that is a Unix time in s, ms, us or ns, otherwise
    the time of its last change; None if unknown."""
    number, digits = file.stamp
    unit = NS_PER_UNIT_BY_DIGITS.get(len(digits))
    return number * unit if unit else file.identity.modified_ns


def _local_digits(moment_ns: int) -> tuple[str, str]:
    seconds, rest = divmod(moment_ns, 10**9)
    try:
        return time.strftime("%Y%m%d%H%M%S", time.localtime(seconds)), f"{rest:09}"
    except (OverflowError, ValueError, OSError):
        # A broken clock gave a time outside of the calendar.
        return "", ""
