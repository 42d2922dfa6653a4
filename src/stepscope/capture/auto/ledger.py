"""What the processes of one program have captured, told to the one that started them.

A launcher has no steps of its own; its ranks have.  They write down what they captured in a file, one JSON object a
line, and the launcher reads it.  The file lies in LOGDIR/plugins/.stepscope/children-<pid>-<random>, a folder that the
first rank makes and the launcher removes.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from stepscope.capture.files import resolve_logdir
from stepscope.capture.report import Wall
from stepscope.formats.store import is_remote
from stepscope.records import dataclass

_FILE = "captured"
_NOBODY = "1"


@dataclass(frozen=True)
class Entry:
    """What one process captured.

    Attributes:
        outcome: what was captured, or why nothing was, in one line.
        profile: the file that was written, if one was.
    """

    outcome: str
    profile: Path | None = None


@dataclass(frozen=True)
class Ledger:
    """Where processes that a program starts write down what they captured.

    Attributes:
        folder: holds the file; None where nobody can read it, as on another machine.
    """

    folder: Path | None = None

    @classmethod
    def for_program(cls, logdir: str) -> Ledger:
        """One for a program whose profiles go to `logdir`.  Nothing is made yet."""
        place = resolve_logdir(logdir)
        if is_remote(place):
            return cls()
        name = f"children-{os.getpid()}-{os.urandom(4).hex()}"
        return cls(Path(place) / "plugins" / ".stepscope" / name)

    @classmethod
    def from_text(cls, text: str) -> Ledger:
        """The one that `as_text` told of."""
        return cls(Path(text)) if Path(text).is_absolute() else cls()

    def to_text(self) -> str:
        """For the environment of a process; never empty."""
        return _NOBODY if self.folder is None else str(self.folder)

    def add(self, outcome: str, profile: Path | None = None) -> None:
        """Writes down what this process captured.  Lines of several processes do not mix: each is one short write."""
        if self.folder is None:
            return
        line = json.dumps({"outcome": outcome, "profile": profile and str(profile)}) + "\n"
        with Wall("telling the program that started this one", strict=False):
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / _FILE).open("ab", buffering=0) as file:
                file.write(line.encode())

    def entries(self) -> list[Entry]:
        """What processes have written down so far.  A line that a full disk cut short counts for nothing."""
        if self.folder is None:
            return []
        try:
            lines = (self.folder / _FILE).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        return [entry for entry in map(_parse_entry, lines) if entry is not None]

    def profiles(self) -> list[Path]:
        """The profiles that processes have written so far."""
        return [entry.profile for entry in self.entries() if entry.profile is not None]

    def remove(self) -> None:
        """Removes the file, with its folder."""
        if self.folder is not None:
            with suppress(OSError):
                shutil.rmtree(self.folder)


def _parse_entry(line: str) -> Entry | None:
    try:
        told = json.loads(line)
        return Entry(str(told["outcome"]), Path(told["profile"]) if told["profile"] else None)
    except (ValueError, LookupError, TypeError):
        return None
