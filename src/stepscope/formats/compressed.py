"""Files that are compressed with gzip, for readers that need all of their bytes at once."""

from __future__ import annotations

import zlib


def unpack(data: bytes, most_bytes: int) -> bytes:
    """The bytes, unpacked where they are compressed.

    Raises:
        ValueError: they are cut short, or unpack to more than `most_bytes`.
        zlib.error: they are damaged.
    """
    if not data.startswith(b"\x1f\x8b"):
        return data
    stream = zlib.decompressobj(wbits=31)
    plain = stream.decompress(data, most_bytes)
    if not stream.eof:
        raise ValueError(
            "it is cut short" if len(plain) < most_bytes else f"it unpacks to more than {most_bytes >> 20} MiB"
        )
    return plain
