"""Spools: their names, and how they start."""

from __future__ import annotations

from stepscope.formats.form import Format


class SpoolFormat(Format):
    """What a capture has flushed so far."""

    def looks_like(self, content: bytes) -> bool:
        """True for content with the magic bytes of spools."""
        from stepscope.formats.spool.layout import MAGIC

        return content.startswith(MAGIC)


FORMAT = SpoolFormat(
    name="spool",
    noun="a spool",
    summary="what a capture of Stepscope had flushed when its job was killed (*.xplane.pb.partial)",
    pattern=r"(?:(?P<host>.*)\.)?xplane\.pb\.partial",
    reader="stepscope.formats.spool.reader:read",
    unfinished_ending=".partial",
)
