"""Files that appear whole or not at all, whoever else writes to the same folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def draft_in(folder: Path) -> Iterator[Path]:
    """A name in a folder that nobody else has; what is still there after the block is removed."""
    draft = folder / f".{os.getpid()}-{os.urandom(8).hex()}.tmp"
    try:
        yield draft
    finally:
        with suppress(OSError):
            draft.unlink()


def claim_name(draft: Path, final: Path) -> None:
    """Gives a file its final name.  Raises FileExistsError if another file has it."""
    try:
        final.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:
        # The file system has no links: an empty file reserves the name, and only its maker replaces it.
        os.close(os.open(final, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        draft.replace(final)


def replace_text(final: Path, text: str) -> None:
    """Writes a file anew.  Raises OSError; the old one then stays."""
    with draft_in(final.parent) as draft:
        draft.write_text(text)
        draft.replace(final)
