"""Riegeli files with profiles: their names, and how they start."""

from __future__ import annotations

from stepscope.formats.form import Format

# The checksum of the first block's header, which is the same in all files.
_START = bytes.fromhex("83af70d10d884a3f")


class RiegeliFormat(Format):
    """Records in chunks."""

    def looks_like(self, content: bytes) -> bool:
        """True for content that starts as all Riegeli files do."""
        return content.startswith(_START)


FORMAT = RiegeliFormat(
    name="riegeli",
    noun="an XSpace in chunks",
    summary="XSpace in chunks (*.xplane.riegeli), written by JAX for profiles beyond 2 GB",
    pattern=r"(?:(?P<host>.*)\.)?xplane\.riegeli",
    reader="stepscope.formats.riegeli.reader:read",
    releases_input=True,
    reads_gzip=False,
)
