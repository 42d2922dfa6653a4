"""Recognizes a file's format by its content, whatever its name."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from stepscope.errors import UnreadableError
from stepscope.formats import store
from stepscope.formats.base import Format, format_from_prefix, require_format
from stepscope.formats.form import JobPlace
from stepscope.formats.no_profile import CAPTURE_HINT, hint_near, leftover_label

_GZIP_MAGIC = b"\x1f\x8b"
SNIFF_BYTES = 64 * 1024


def sniff(prefix: bytes) -> Format | None:
    """The format of a file by its first bytes, whatever its name; None if it is not a profile.

    A gzip file is judged by its unpacked content.

    Args:
        prefix: the first kilobyte of the file, or more.
    """
    return format_from_prefix(_unpack_prefix(prefix))


def format_by_content(path: str, name: str) -> Format:
    """The format of a file whose name gives none.  Raises UnreadableError if the file is not a profile."""
    prefix = store.read_prefix(path, SNIFF_BYTES)
    if not prefix:
        raise UnreadableError("the file is empty", code="empty", path=path, hint=CAPTURE_HINT)
    fmt = sniff(prefix)
    if fmt and not fmt.reads_gzip and prefix.startswith(_GZIP_MAGIC):
        hint = "unpack it with gunzip and give the result"
        raise UnreadableError(f"this is {fmt.noun} compressed with gzip", code="unknown-format", path=path, hint=hint)
    label = leftover_label(name)
    if label and not (fmt and fmt.is_certain_file(path, _unpack_prefix(prefix))):
        reason = f"this is not a profile but {label}"
        raise UnreadableError(reason, code="unknown-format", path=path, hint=hint_near(path))
    return fmt or require_format(name, path)


def certain_format(formats: Iterable[Format], path: str) -> tuple[Format, JobPlace | None] | None:
    """The first format that a file's content can only be of, and the place in a job that its start states.  Raises
    NotFoundError, AccessError."""
    content = _unpack_prefix(store.read_prefix(path, SNIFF_BYTES))
    fmt = next((fmt for fmt in formats if fmt.is_certain_file(path, content)), None)
    return None if fmt is None else (fmt, fmt.place_in_job(content))


def _unpack_prefix(prefix: bytes) -> bytes:
    """The first bytes of a file: unpacked to a bounded size if they are gzip, otherwise without their BOM."""
    if not prefix.startswith(_GZIP_MAGIC):
        return prefix.removeprefix(b"\xef\xbb\xbf")
    try:
        return zlib.decompressobj(wbits=31).decompress(prefix, SNIFF_BYTES)
    except zlib.error:
        return b""
