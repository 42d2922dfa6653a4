"""The one list of formats.  To add a format, add a folder with a reader and a `Format`, and one line here.

The session finder, error messages and the doctor use this list; no other module names a format.
"""

from __future__ import annotations

from stepscope.errors import UnreadableError
from stepscope.formats.form import Format
from stepscope.formats.kineto.form import FORMAT as KINETO
from stepscope.formats.spool.form import FORMAT as SPOOL
from stepscope.formats.torch_memory.form import FORMAT as TORCH_MEMORY
from stepscope.formats.xspace.form import FORMAT as XSPACE

__all__ = [
    "FORMATS",
    "Format",
    "folder_formats",
    "format_from_prefix",
    "format_of",
    "format_with_ending",
    "require_format",
]

FORMATS: tuple[Format, ...] = (XSPACE, KINETO, SPOOL, TORCH_MEMORY)


def format_of(basename: str) -> Format | None:
    """The format that claims a file name, or None."""
    return next((candidate for candidate in FORMATS if candidate.claims(basename)), None)


def folder_formats() -> tuple[Format, ...]:
    """The formats whose files count as profiles when found in a folder."""
    return tuple(candidate for candidate in FORMATS if candidate.in_folders)


def format_from_prefix(content: bytes) -> Format | None:
    """The format that the first bytes of an unpacked file fit; None if they fit none."""
    return next((candidate for candidate in FORMATS if candidate.looks_like(content)), None)


def format_with_ending(basename: str) -> Format | None:
    """The format that may use this ending, for a name that no format claims; None if there is none."""
    name = basename.removesuffix(".gz")
    return next((candidate for candidate in FORMATS if name.endswith(candidate.other_endings)), None)


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
