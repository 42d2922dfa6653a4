"""Folders that only their user can enter, in places where every user may write."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

OTHERS, OTHERS_WRITE = 0o077, 0o022
"""What other users must not be allowed: anything, or to change what is there."""


def make_private(folder: Path, levels: int = 1, denied: int = OTHERS) -> None:
    """Makes a folder, and `levels - 1` above it, for this user alone; those of this user that are open are closed.

    `mkdir(mode=0o700, parents=True)` gives the mode to the last folder only.

    Raises:
        OSError: a folder cannot be made, or is another user's.
    """
    wanted = [*reversed(folder.parents[: levels - 1]), folder]
    wanted[0].parent.mkdir(parents=True, exist_ok=True)
    for each in wanted:
        each.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):  # a sweep of another process removed it while it was empty
            if is_private(each, denied):
                continue
            if not is_own(each):
                raise PermissionError(f"{each} belongs to another user; remove it, or set TMPDIR")
            each.chmod(0o700)


def is_private(folder: Path, denied: int = OTHERS) -> bool:
    """Whether the folder is this user's own, and denies others these rights.  Raises OSError."""
    return is_own(folder) and (not hasattr(os, "geteuid") or not folder.stat().st_mode & denied)


def is_own(folder: Path) -> bool:
    """Whether the folder, and a link in its place, are this user's.  Raises OSError."""
    return not hasattr(os, "geteuid") or {folder.stat().st_uid, folder.lstat().st_uid} == {os.geteuid()}
