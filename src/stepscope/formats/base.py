"""The one list of formats.  To add a format, add a folder with a reader and a `Format`, and one line here.

The session finder, error messages and the doctor use this list; no other module names a format.
"""

from __future__ import annotations

from collections.abc import Callable

from stepscope.errors import UnreadableError
from stepscope.formats.flight_recorder.form import FORMAT as FLIGHT_RECORDER
from stepscope.formats.form import Format
from stepscope.formats.jax_memory.form import FORMAT as JAX_MEMORY
from stepscope.formats.kineto.form import FORMAT as KINETO
from stepscope.formats.nsight.form import PARQUET, REPORT, SQLITE
from stepscope.formats.perfetto.form import FORMAT as PERFETTO
from stepscope.formats.riegeli.form import FORMAT as RIEGELI
from stepscope.formats.spool.form import FORMAT as SPOOL
from stepscope.formats.torch_memory.form import FORMAT as TORCH_MEMORY
from stepscope.formats.xspace.form import FORMAT as XSPACE
from stepscope.plugins import plugins_of

__all__ = [
    "FORMATS",
    "Format",
    "folder_formats",
    "format_from_prefix",
    "format_of",
    "format_with_ending",
    "require_format",
]

FORMATS: tuple[Format, ...] = (
    JAX_MEMORY,
    XSPACE,
    KINETO,
    PERFETTO,
    RIEGELI,
    SPOOL,
    FLIGHT_RECORDER,
    TORCH_MEMORY,
    SQLITE,
    PARQUET,
    REPORT,
)


GROUP = "stepscope.formats"


def added_formats() -> tuple[Format, ...]:
    """The formats of other packages."""
    return plugins_of(GROUP, Format).found


def _first(fits: Callable[[Format], bool]) -> Format | None:
    """The first format that fits; those of other packages come last, and are imported only if no other fits."""
    found = next(filter(fits, FORMATS), None)
    return found or next(filter(fits, added_formats()), None)


def format_of(basename: str) -> Format | None:
    """The format that claims a file name, or None."""
    return _first(lambda candidate: candidate.claims(basename))


def folder_formats() -> tuple[Format, ...]:
    """The formats whose files count as profiles when found in a folder."""
    return tuple(candidate for candidate in (*FORMATS, *added_formats()) if candidate.in_folders)


def format_from_prefix(content: bytes) -> Format | None:
    """The format that the first bytes of an unpacked file fit; None if they fit none."""
    return _first(lambda candidate: candidate.looks_like(content))


def format_with_ending(basename: str) -> Format | None:
    """The format that may use this ending, for a name that no format claims; None if there is none."""
    name = basename.removesuffix(".gz")
    return _first(lambda candidate: name.endswith(candidate.other_endings))


def require_format(basename: str, path: str) -> Format:
    """The format that claims a file name.  Raises UnreadableError with the list of formats if none does."""
    found = format_of(basename)
    if found is None:
        known = "; ".join(candidate.summary for candidate in (*FORMATS, *added_formats()))
        raise UnreadableError(
            "this is not a profile by its name",
            code="unknown-format",
            path=path,
            hint=f"files that can be read: {known}",
        )
    return found
