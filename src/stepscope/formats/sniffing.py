"""What a file is by its content, whatever its name."""

from __future__ import annotations

import zlib

from stepscope.errors import InputError, Problem, UnreadableError
from stepscope.formats import store
from stepscope.formats.base import Format, format_like, require_format
from stepscope.formats.no_profile import CAPTURE_HINT, hint_near, known_label

_GZIP_MAGIC = b"\x1f\x8b"
SNIFF_BYTES = 64 * 1024


def sniff(prefix: bytes) -> Format | None:
    """The format of a file by the first bytes of its content, whatever its name; None if it is no profile's.

    A gzip file is judged by what is compressed in it.

    Args:
        prefix: the first kilobyte of the file, or more.
    """
    return format_like(_unpacked(prefix))


def format_by_content(path: str, name: str) -> Format:
    """The format of a file whose name gives none.  Raises UnreadableError for a file that is no profile."""
    prefix = store.read_prefix(path, SNIFF_BYTES)
    if not prefix:
        raise UnreadableError("the file is empty", code="empty", path=path, hint=CAPTURE_HINT)
    content = _unpacked(prefix)
    fmt = format_like(content)
    if fmt and not fmt.reads_gzip and prefix.startswith(_GZIP_MAGIC):
        hint = "unpack it with gunzip and give the result"
        raise UnreadableError(f"this is {fmt.noun} compressed with gzip", code="unknown-format", path=path, hint=hint)
    label = known_label(name)
    if label and not (fmt and fmt.is_surely(content)):
        raise UnreadableError(f"this is no profile but {label}", code="unknown-format", path=path, hint=hint_near(path))
    return fmt or require_format(name, path)


def is_surely(fmt: Format, path: str, problems: list[Problem]) -> bool:
    """True for a file whose content is of a format and can be nothing else; what cannot be read goes to `problems`."""
    try:
        return fmt.is_surely(_unpacked(store.read_prefix(path, SNIFF_BYTES)))
    except InputError as error:
        problems.append(error.problem)
        return False


def _unpacked(prefix: bytes) -> bytes:
    """The start of the content, of a bounded size, if the bytes are gzip's; else as they are, without a BOM."""
    if not prefix.startswith(_GZIP_MAGIC):
        return prefix.removeprefix(b"\xef\xbb\xbf")
    try:
        return zlib.decompressobj(wbits=31).decompress(prefix, SNIFF_BYTES)
    except zlib.error:
        return b""
