"""What a format is: the names of its files, how they start, and the function that reads them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Set
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope import kernels
    from stepscope.model import HostTrace

    Reader = Callable[[Any, str, str], HostTrace]

NO_STAMP: tuple[int, str] = (-1, "")


class NameParts(NamedTuple):
    """What a file's name says.

    Attributes:
        host: its host; empty if the name has none.
        stamp: the number that orders the files of one host, as a number and as written.
    """

    host: str
    stamp: tuple[int, str] = NO_STAMP


class JobPlace(NamedTuple):
    """A file's place in a job, as its first bytes state it.

    Attributes:
        rank: its rank.
        size: how many ranks the job has.
        begin_s: when its recording began, in seconds since the epoch; None if its first bytes do not say.
    """

    rank: int
    size: int
    begin_s: float | None = None


class Companion(Enum):
    """What a file is that lies in one folder with profiles of another format."""

    OWN = "data of its own"
    COPY = "a copy of one of them"
    EXPORT = "probably an export of one of them"


@dataclass(frozen=True)
class Format:
    """A file format that holds the trace of one host.  One whose content needs a closer look is a subclass.

    Attributes:
        name: short stable identifier.
        noun: what one file is, with its article.
        summary: the names of its files, and who writes them: for error messages.
        pattern: regular expression that matches a file's whole base name; its group `host`, if it matches, is the
            host's name.
        reader: `module:function`, imported when the first file is read.  It is called with the file's bytes, the name
            to use in messages, and the host's name, and raises UnreadableError if the file holds nothing usable.
        hosts_reader: the same for a format whose files may hold several processes: it returns a trace for each.
        starts: what its files start with, unpacked: one of these.
        in_folders: files with such a name count as profiles when found in a folder; False for names that are also used
            for other things.
        takes_pieces: the reader also accepts an iterator over the file's pieces, so that a large file never has to fit
            into memory.
        releases_input: the reader also accepts an iterator over one buffer with the file's bytes.  It releases the
            buffer after decoding, so that the file and the finished trace are never in memory together.
        decoder: `module:function`, the first part of such a reader.  It needs no numpy, so it runs while the reader is
            imported; it is called with a `kernels.wire.Source`, and the reader takes its result in place of the bytes.
        reads_gzip: the reader unpacks files that are compressed with gzip.
        has_spans: a host may write several files into one folder, one per time span; their names hold stamps.
        other_endings: files with these endings are checked by content, packed or not.
        unfinished_ending: the ending that an unfinished file adds to the name of its final profile; it is left out if
            that profile exists.
        is_of_job: files of one folder whose names differ in their last number are of the ranks of one job.
        holds_memory_only: files hold what fills a memory, and no steps or ops: only one tool has an answer.
    """

    name: str
    noun: str
    summary: str
    pattern: str
    reader: str
    hosts_reader: str = ""
    starts: tuple[bytes, ...] = ()
    in_folders: bool = True
    takes_pieces: bool = False
    releases_input: bool = False
    decoder: str = ""
    reads_gzip: bool = True
    has_spans: bool = False
    other_endings: tuple[str, ...] = ()
    unfinished_ending: str = ""
    is_of_job: bool = False
    holds_memory_only: bool = False

    # -- content -------------------------------------------------------------------------------------------------------

    def looks_like(self, content: bytes) -> bool:
        """True if a file with this start may be of this format.

        Args:
            content: the first kilobyte of the file or more, unpacked.
        """
        return content.startswith(self.starts)

    def is_certain_match(self, content: bytes) -> bool:
        """True if a file with this start can only be of this format, whatever its name."""
        return self.looks_like(content)

    def is_certain_file(self, path: str, content: bytes) -> bool:
        """True if a file can only be of this format.

        Args:
            path: where it is, for a format whose files do not show it at their start.
            content: its start, as for `looks_like`.
        """
        return self.is_certain_match(content)

    def place_in_job(self, content: bytes) -> JobPlace | None:
        """The place in a job that the first bytes of a file state; None if they state none."""
        return None

    def recorded_span(self, path: str) -> tuple[int, int] | None:
        """When the recording in a file began and ended, in ns since the epoch; None if a short look does not tell."""
        return None

    # -- names ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def claims(self, basename: str) -> bool:
        """True if a file with this name is of this format."""
        return self._regex.fullmatch(basename) is not None

    def may_hold(self, basename: str) -> bool:
        """True if a file with this name, which no format claims, may be of this format: its content tells."""
        return basename.removesuffix(".gz").endswith(self.other_endings)

    def host_of(self, basename: str) -> str:
        """The host in a file's name, or the empty string."""
        match = self._regex.fullmatch(basename)
        return (match.groupdict().get("host") or "") if match else ""

    def name_parts(self, basename: str) -> NameParts:
        """What the name of a claimed file says."""
        return NameParts(self.host_of(basename))

    def classify_companion(self, basename: str, hosts: Set[str]) -> Companion:
        """What a file with this name is if files of another format lie in the same folder.

        Args:
            hosts: the hosts of those files.
        """
        return Companion.OWN

    # -- reading -------------------------------------------------------------------------------------------------------

    def load_reader(self) -> Reader:
        """The function that reads this format.  It imports the reader's module, which takes time on first use."""
        reader: Reader = _load(self.reader)
        return reader

    def decode(
        self, data: Iterator[bytes | memoryview] | kernels.wire.Source, left_out: frozenset[str] = frozenset()
    ) -> Any:
        """What the `decoder` makes of a file's bytes, without some stats of events; the bytes as they came without a
        decoder."""
        return _load(self.decoder)(data, left_out=left_out) if self.decoder else data

    def read(self, data: Any, source: str, host: str) -> HostTrace:
        """Reads one host's trace.

        Args:
            data: the file's bytes, or an iterator over them if `takes_pieces` or `releases_input`, or what `decode`
                made of them.
            source: the name to use in messages.
            host: the host's name.

        Raises:
            UnreadableError: nothing in `data` can be used.
        """
        from stepscope.formats.bounds import apply_bounds

        return apply_bounds(self.load_reader()(data, source, host))

    def may_hold_several(self, path: str) -> bool:
        """False if a look at a file shows that it holds one process, so that it is read as usual."""
        return bool(self.hosts_reader)

    def read_hosts(
        self, data: bytes | memoryview | Iterator[bytes | memoryview], source: str, host: str
    ) -> tuple[HostTrace, ...]:
        """Reads a file that may hold several processes: a trace for each, with a name of its own if there are several.

        Args, Raises: as for `read`.
        """
        if not self.hosts_reader:
            return (self.read(data, source, host),)
        from stepscope.formats.bounds import apply_bounds

        return tuple(apply_bounds(trace) for trace in _load(self.hosts_reader)(data, source, host))


def _load(place: str) -> Any:
    module, _, function = place.partition(":")
    return getattr(importlib.import_module(module), function)
