"""Lists what the processes of one program have captured, for the process that started them.

A launcher runs no steps; its ranks do.  Each rank adds what it captured to a file, one JSON object per line, and the
launcher reads the file.  It is in the folder LOGDIR/plugins/.stepscope/children-<pid>-<random>, which the first rank
makes and the launcher removes.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from stepscope.capture.files import drop_if_empty, resolve_logdir
from stepscope.capture.report import NeverRaise
from stepscope.formats.store import is_remote
from stepscope.records import dataclass

_FILE = "captured"
_NOBODY = "1"  # no file that the launcher could read


@dataclass(frozen=True)
class Captured:
    """What one process captured.

    Attributes:
        outcome: one line that says what was captured, or why nothing was.
        profile: the file that was written; None if there is none.
    """

    outcome: str
    profile: Path | None = None


@dataclass(frozen=True)
class Ledger:
    """The list of what a program's processes have captured.

    Attributes:
        folder: contains the file; None if the launcher could not read it, as on another machine.
    """

    folder: Path | None = None

    @classmethod
    def create(cls, logdir: str) -> Ledger:
        """A ledger for a program whose profiles go to `logdir`.  No file is made yet."""
        place = resolve_logdir(logdir)
        if is_remote(place):
            return cls()
        name = f"children-{os.getpid()}-{os.urandom(4).hex()}"
        return cls(Path(place) / "plugins" / ".stepscope" / name)

    @classmethod
    def from_text(cls, text: str) -> Ledger:
        """The ledger that `to_text` described."""
        return cls(Path(text)) if Path(text).is_absolute() else cls()

    def to_text(self) -> str:
        """The ledger as a text for the environment of a process; never empty."""
        return _NOBODY if self.folder is None else str(self.folder)

    def add(self, outcome: str, profile: Path | None = None) -> None:
        """Adds what this process captured.  Lines of several processes do not mix: each is one short write."""
        if self.folder is None:
            return
        line = json.dumps({"outcome": outcome, "profile": profile and str(profile)}) + "\n"
        with NeverRaise("reporting to the program that started this one", strict=False):
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / _FILE).open("ab", buffering=0) as file:
                file.write(line.encode())

    def entries(self) -> list[Captured]:
        """The entries so far.  A line that was cut short, as by a full disk, is ignored."""
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
            drop_if_empty(self.folder.parent)


def _parse_entry(line: str) -> Captured | None:
    try:
        said = json.loads(line)
        return Captured(str(said["outcome"]), Path(said["profile"]) if said["profile"] else None)
    except (ValueError, LookupError, TypeError):
        return None
