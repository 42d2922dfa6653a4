"""How files start that are given in place of a profile."""

from __future__ import annotations

CRLF_START = b"\r\n"
"""An XSpace starts with a line feed, the tag of its first plane; a transfer as text makes two bytes of it."""

_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "a file compressed with zstd (unpack it with zstd -d)"),
    (b"\x04\x22\x4d\x18", "a file compressed with lz4 (unpack it with lz4 -d)"),
    (b"BZh", "a file compressed with bzip2 (unpack it with bunzip2)"),
    # What Git leaves of a large file that it has not fetched.
    (b"version https://git-lfs.github.com/spec/", "a pointer of Git LFS (run git lfs pull to get the file)"),
)

_CONVERTED = "a profile whose line ends were converted, as by a transfer as text (transfer it as binary)"


def describe_head(head: bytes) -> str:
    """What a file is by its first bytes, if these are not the start of a profile; empty if nothing is known."""
    for start, what in _STARTS:
        if head.startswith(start):
            return what
    if head and not head.strip(b"\0"):
        return "the file of a writer that crashed: it starts with zeros"
    first = head.lstrip()[:1]
    if first in (b"{", b"["):
        return "JSON"
    if first == b"<":
        return "HTML or XML, such as the page of a login or of an error"
    if head.isascii() and all(c.isprintable() or c.isspace() for c in head.decode()):
        return "text" if first else "nothing but blanks"
    return _CONVERTED if head.startswith(CRLF_START) else ""
