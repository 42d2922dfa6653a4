"""What a format is: what its files are called, how they start, and who reads them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Set
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.model import HostTrace

    Reader = Callable[[Any, str, str], HostTrace]

NO_STAMP: tuple[int, str] = (-1, "")


class NameParts(NamedTuple):
    """What a file's name says.

    Attributes:
        host: its host, empty if it does not say.
        stamp: the number by which files of one host follow each other, as a number and as it stands there.
    """

    host: str
    stamp: tuple[int, str] = NO_STAMP


class Beside(Enum):
    """What a file is that lies in a folder with profiles of another format."""

    OWN = "data of its own"
    COPY = "a copy of one of them"
    EXPORT = "taken for an export of one of them"


@dataclass(frozen=True)
class Format:
    """A file format that holds the trace of one host.  A format is a subclass that says how its content starts.

    Attributes:
        name: short stable identifier.
        noun: what one file is, with its article.
        summary: one line for help texts and error messages.
        pattern: regular expression that a file's base name matches as a whole; its group `host`, where it takes part
            in the match, names the host.
        reader: `module:function`, imported when the first file is read; called with the file's bytes, the name to use
            in messages, and the host's name.  It raises UnreadableError if there is nothing to be had from the file.
        in_folders: files of this name that lie in a folder are taken for profiles; False for names that other things
            have as well.
        takes_pieces: the reader also takes an iterator over the file's pieces, so that a large file need not be in
            memory as a whole.
        lets_go: the reader also takes an iterator over one buffer with the file's bytes, and lets go of it once it is
            decoded, so that the file and the finished trace are not in memory at a time.
        reads_gzip: the reader unpacks a file that is compressed with gzip.
        has_spans: a host may write several files into one folder, one for each span of time; their names hold stamps.
        other_endings: files whose name matches no pattern and ends so are looked into where a folder holds no other
            profile.
        unfinished_ending: what the name of a file has more than that of the profile that will be made of it; beside
            that profile it is left out.
    """

    name: str
    noun: str
    summary: str
    pattern: str
    reader: str
    in_folders: bool = True
    takes_pieces: bool = False
    lets_go: bool = False
    reads_gzip: bool = True
    has_spans: bool = False
    other_endings: tuple[str, ...] = ()
    unfinished_ending: str = ""

    # -- content -------------------------------------------------------------------------------------------------------

    def looks_like(self, content: bytes) -> bool:
        """True if a file that starts so may be of this format.

        Args:
            content: the first kilobyte of the file or more, unpacked.
        """
        raise NotImplementedError

    def is_surely(self, content: bytes) -> bool:
        """True if a file that starts so is of this format and can be nothing else, whatever it is called."""
        return self.looks_like(content)

    # -- names ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def claims(self, basename: str) -> bool:
        """True if a file of this name is of this format."""
        return self._regex.fullmatch(basename) is not None

    def host_of(self, basename: str) -> str:
        """The host that a file's name gives, or the empty string."""
        match = self._regex.fullmatch(basename)
        return (match.groupdict().get("host") or "") if match else ""

    def name_parts(self, basename: str) -> NameParts:
        """What a file's name says that is claimed."""
        return NameParts(self.host_of(basename))

    def beside(self, basename: str, hosts: Set[str]) -> Beside:
        """What a file of this name is beside files of another format.

        Args:
            hosts: the hosts of these.
        """
        return Beside.OWN

    # -- reading -------------------------------------------------------------------------------------------------------

    def load_reader(self) -> Reader:
        """The function that reads this format; imports its module, which takes a while the first time."""
        module, _, function = self.reader.partition(":")
        reader: Reader = getattr(importlib.import_module(module), function)
        return reader

    def read(self, data: bytes | memoryview | Iterator[bytes | memoryview], source: str, host: str) -> HostTrace:
        """Reads one host's trace, from an iterator only if `takes_pieces` or `lets_go`.  Raises UnreadableError if
        nothing in `data` can be used."""
        return self.load_reader()(data, source, host)
