"""What a format is, and the one list of formats.

Adding a format is one module with a function `read(data, source, host) -> HostTrace` and one line in `FORMATS`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stepscope.errors import UnreadableError
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.model import HostTrace

    Reader = Callable[[Any, str, str], HostTrace]


@dataclass(frozen=True)
class Format:
    """A file format that holds the trace of one host.

    Attributes:
        name: short stable identifier.
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
    """

    name: str
    summary: str
    pattern: str
    reader: str
    in_folders: bool = True
    takes_pieces: bool = False
    lets_go: bool = False

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def claims(self, basename: str) -> bool:
        """True if a file of this name is of this format."""
        return self._regex.fullmatch(basename) is not None

    def host_of(self, basename: str) -> str:
        """The host's name that a file name tells, or the empty string."""
        match = self._regex.fullmatch(basename)
        return (match.groupdict().get("host") or "") if match else ""

    def load_reader(self) -> Reader:
        """The function that reads this format; imports its module, which takes a while the first time."""
        module, _, function = self.reader.partition(":")
        reader: Reader = getattr(importlib.import_module(module), function)
        return reader

    def read(self, data: bytes | memoryview | Iterator[bytes | memoryview], source: str, host: str) -> HostTrace:
        """Reads one host's trace, from an iterator only if `takes_pieces` or `lets_go`.  Raises UnreadableError if
        nothing in `data` can be used."""
        return self.load_reader()(data, source, host)


FORMATS: tuple[Format, ...] = (
    Format(
        name="xspace",
        summary="XSpace protobuf (*.xplane.pb), written by TensorFlow, JAX and PyTorch/XLA",
        pattern=r"(?:(?P<host>.*)\.)?xplane\.pb",
        reader="stepscope.formats.xspace.reader:read",
        lets_go=True,
    ),
    Format(
        name="kineto",
        summary="Kineto or Chrome trace JSON (*.pt.trace.json, *.trace.json, .gz), written by PyTorch",
        pattern=r"(?P<host>.*?)(?:\.\d+)?(?:\.pt)?\.trace\.json(?:\.gz)?",
        reader="stepscope.formats.kineto:read",
        takes_pieces=True,
    ),
    Format(
        name="spool",
        summary="what a capture of Stepscope had flushed when its job was killed (*.xplane.pb.partial)",
        pattern=r"(?:(?P<host>.*)\.)?xplane\.pb\.partial",
        reader="stepscope.formats.spool.reader:read",
    ),
    Format(
        name="torch-memory",
        summary="memory snapshot (*.pickle), written by torch.cuda.memory._dump_snapshot; give the file itself",
        pattern=r"(?P<host>.+)\.(?:pickle|pkl)",
        reader="stepscope.formats.torch_memory:read",
        in_folders=False,
    ),
)


def format_of(basename: str) -> Format | None:
    """The format that claims a file name, or None."""
    return next((candidate for candidate in FORMATS if candidate.claims(basename)), None)


def require_format(basename: str, path: str) -> Format:
    """The format that claims a file name.  Raises UnreadableError with the list of formats if none does."""
    found = format_of(basename)
    if found is None:
        known = "; ".join(candidate.summary for candidate in FORMATS)
        raise UnreadableError(
            "this is not a profile by its name",
            code="unknown-format",
            path=path,
            hint=f"files that can be read: {known}",
        )
    return found
