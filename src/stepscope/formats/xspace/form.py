"""XSpace files: their names, and how they start."""

from __future__ import annotations

from stepscope.formats.form import Format
from stepscope.formats.protobuf import read_varint
from stepscope.formats.store import is_remote, plain

_XPLANE_TAGS = frozenset({0x08, 0x12, 0x1A, 0x22, 0x2A, 0x32})
_XSPACE_TAGS = frozenset({0x0A, 0x12, 0x1A, 0x22})
_USUAL_PLANES = (b"/host:", b"/device:", b"Task Environment")
_LONGEST_NAME = 4096
_TEXT_TAGS = (b"\x12", b"\x1a", b"\x22")
_MOST_TEXTS = 8


class XSpaceFormat(Format):
    """A protobuf message of planes."""

    def looks_like(self, content: bytes) -> bool:
        """True if the first field can be a plane: field 1, length-delimited, starting with a field of XPlane.

        Host names and messages of the recorder may stand before it.

        The second tag distinguishes it from other messages that start with a nested message, such as graphs and HLO
        modules.  JSON after an empty line starts with the same byte.
        """
        content = _skip_texts(content)
        if not content.startswith(b"\x0a") or content.lstrip()[:1] in (b"{", b"["):
            return False
        length, position = read_varint(content, 1)
        if length is None or length >= 1 << 40 or position >= len(content):
            return False
        if length == 0:
            return content[position] in _XSPACE_TAGS
        if content[position] not in _XPLANE_TAGS:
            return False
        return content[position] != 0x12 or _is_short_text(content, position + 1)

    def is_certain_match(self, content: bytes) -> bool:
        """True for an XSpace with the name of one of the usual planes near its start."""
        return self.looks_like(content) and any(name in content for name in _USUAL_PLANES)

    def may_hold_several(self, path: str) -> bool:
        """True for a file of this machine with several host planes."""
        if is_remote(path):
            return False
        from stepscope.formats.xspace.several import holds_several

        return holds_several(plain(path))

    def recorded_span(self, path: str) -> tuple[int, int] | None:
        """What a file of this machine says of itself."""
        if is_remote(path):
            return None
        from stepscope.formats.xspace.several import recorded_span

        return recorded_span(plain(path))


def _skip_texts(content: bytes) -> bytes:
    """The content behind the texts at its start: errors, warnings and host names, a few at most."""
    for _ in range(_MOST_TEXTS):
        if content[:1] not in _TEXT_TAGS or not _is_short_text(content, 1):
            break
        length, start = read_varint(content, 1)
        content = content[start + (length or 0) :]
    return content


def _is_short_text(content: bytes, position: int) -> bool:
    """True if the bytes at a position can be a plane's name, or the start of one."""
    length, start = read_varint(content, position)
    if length is None or length > _LONGEST_NAME:
        return False
    return content[start : start + length].decode("utf-8", "replace").isprintable()


FORMAT = XSpaceFormat(
    name="xspace",
    noun="an XSpace",
    summary="*.xplane.pb (TensorFlow, JAX, PyTorch/XLA)",
    pattern=r"(?:(?P<host>.*)\.)?xplane\.pb",
    reader="stepscope.formats.xspace.reader:read",
    hosts_reader="stepscope.formats.xspace.several:read_hosts",
    releases_input=True,
    decoder="stepscope.formats.xspace.decoding:decode",
    reads_gzip=False,
)
