"""What a file is by its content, whatever its name."""

from __future__ import annotations

import zlib

from stepscope.errors import InputError, Problem, UnreadableError
from stepscope.formats import store
from stepscope.formats.base import FORMATS, Format, require_format
from stepscope.formats.no_profile import CAPTURE_HINT, hint_near, known_label

_GZIP_MAGIC = b"\x1f\x8b"
SNIFF_BYTES = 64 * 1024
_PICKLE_HEAD = 256  # the first key of a memory snapshot stands here
_XPLANE_TAGS = frozenset({0x08, 0x12, 0x1A, 0x22, 0x2A, 0x32})
_XSPACE_TAGS = frozenset({0x0A, 0x12, 0x1A, 0x22})


def sniff(prefix: bytes) -> Format | None:
    """The format of a file by the first bytes of its content, whatever its name; None if it is no profile's.

    A gzip file is judged by what is compressed in it.

    Args:
        prefix: the first kilobyte of the file, or more.
    """
    content = _inflated(prefix)
    if content.lstrip()[:1] in (b"{", b"["):
        return format_named("kineto")
    if content.startswith(b"\x80") and (b"device_traces" in content or b"segments" in content[:_PICKLE_HEAD]):
        return format_named("torch-memory")
    return format_named("xspace") if _begins_as_xspace(content) else None


def format_by_content(path: str, name: str) -> Format:
    """The format of a file whose name tells none.  Raises UnreadableError for a file that is no profile."""
    prefix = store.read_prefix(path, SNIFF_BYTES)
    if not prefix:
        raise UnreadableError("the file is empty", code="empty", path=path, hint=CAPTURE_HINT)
    fmt = sniff(prefix)
    if fmt and fmt.name == "xspace" and prefix.startswith(_GZIP_MAGIC):
        hint = "unpack it with gunzip and give the result"
        raise UnreadableError("this is an XSpace compressed with gzip", code="unknown-format", path=path, hint=hint)
    label = known_label(name)
    if label and not (fmt and fmt.name == "xspace"):
        raise UnreadableError(f"this is no profile but {label}", code="unknown-format", path=path, hint=hint_near(path))
    return fmt or require_format(name, path)


def holds_trace(path: str, problems: list[Problem]) -> bool:
    """True for JSON that is a trace and not any other; the keys and first events stand at the beginning."""
    try:
        content = _inflated(store.read_prefix(path, SNIFF_BYTES)).lstrip()
    except InputError as error:
        problems.append(error.problem)
        return False
    if content.startswith(b"["):
        return b'"ph"' in content[:4096]
    return content.startswith(b"{") and (b'"traceEvents"' in content or b'"deviceProperties"' in content)


def _inflated(prefix: bytes) -> bytes:
    """The beginning of the content, of a bounded size, if the bytes are gzip's; else as they are, without a BOM."""
    if not prefix.startswith(_GZIP_MAGIC):
        return prefix.removeprefix(b"\xef\xbb\xbf")
    try:
        return zlib.decompressobj(wbits=31).decompress(prefix, SNIFF_BYTES)
    except zlib.error:
        return b""


def _begins_as_xspace(content: bytes) -> bool:
    """True if the first field can be a plane of an XSpace: field 1, of a length, beginning with a field of XPlane.

    The second tag tells it from other messages that begin with a nested message, such as graphs and HLO modules.
    """
    if not content.startswith(b"\x0a"):
        return False
    length, position = _varint(content, 1)
    if length is None or length >= 1 << 40 or position >= len(content):
        return False
    if length == 0:
        return content[position] in _XSPACE_TAGS
    if content[position] not in _XPLANE_TAGS:
        return False
    return content[position] != 0x12 or _is_short_text(content, position + 1)


def _is_short_text(content: bytes, position: int) -> bool:
    """True if a plane's name, as far as it is there, can stand at a position."""
    length, start = _varint(content, position)
    if length is None or length > 4096:
        return False
    return content[start : start + length].decode("utf-8", "replace").isprintable()


def _varint(content: bytes, position: int) -> tuple[int | None, int]:
    """The number at a position and the position behind it; None if there is none."""
    value = 0
    for count, byte in enumerate(content[position : position + 10]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value, position + count + 1
    return None, position


def format_named(name: str) -> Format:
    """The format of that name."""
    return next(fmt for fmt in FORMATS if fmt.name == name)
