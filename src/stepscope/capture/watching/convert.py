"""Makes a profile of what a ring kept.  Another process runs this; see `stepscope.capture.aside`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str]) -> None:
    """Converts a spool.

    Args:
        arguments: the path of the spool, that of the profile, and the host's name.
    """
    from stepscope.errors import UnreadableError
    from stepscope.formats.spool.reader import parse
    from stepscope.formats.xspace.writer import write

    source, result, host = Path(arguments[0]), Path(arguments[1]), arguments[2]
    spool = parse(source.read_bytes())
    if spool is None:
        raise UnreadableError("this is not the ring of a watch", path=str(source))
    result.write_bytes(write(spool.trace(host)))
