"""Damaged files by number: the same number always gives the same file, so a run can go on where another ended."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import seeds

from stepscope.formats.base import format_of
from stepscope.formats.xspace.encode import varint
from stepscope.formats.xspace.writer import write
from stepscope.records import dataclass

NAMES = {
    "xspace": "a.xplane.pb",
    "trace_json": "a.pt.trace.json",
    "perfetto": "a.pftrace",
    "riegeli": "a.xplane.riegeli",
    "nsight": "a.sqlite",
    "flight_recorder": "nccl_trace_rank_0",
}
"""A file name of each format, by the name of its seeds."""

MOST_BYTES = 200_000
"""Larger files of a corpus are left out: an input should take milliseconds."""

_HUGE = (1 << 60, (1 << 64) - 1, 1 << 31, 127, 1 << 14, 0)
_NUMBERS = (b"-1", b"0", b"1e308", b"NaN", b"9223372036854775808", b"1e-300", b'"7"', b"null", b"[]", b"true")
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_STRING = re.compile(rb'"[^"\\]{0,60}"')


@dataclass(frozen=True)
class Seed:
    """A whole file to damage: the name of a file of its format, and its content."""

    name: str
    content: bytes


def make_seeds(corpus: Path | None = None) -> list[Seed]:
    """The seeds of all formats, those of traces written as XSpace too, and the small files of a folder.

    Args:
        corpus: a folder with profiles; files of other kinds, and large ones, are left out.
    """
    found = [Seed(NAMES[kind], content) for kind in NAMES for content in seeds.MAKERS[kind]()]
    for content in list(seeds.traces())[:1]:
        reader = format_of(NAMES["trace_json"])
        assert reader is not None
        found.append(Seed(NAMES["xspace"], write(reader.read(content, NAMES["trace_json"], ""))))
    for path in sorted(corpus.rglob("*")) if corpus is not None else ():
        if path.is_file() and format_of(path.name) is not None and path.stat().st_size <= MOST_BYTES:
            found.append(Seed(path.name, path.read_bytes()))
    return found


def damage(number: int, sources: Sequence[Seed]) -> Seed:
    """The damaged file of a number."""
    chance = random.Random(number)
    source = sources[number % len(sources)]
    content = bytearray(source.content)
    injuries = _INJURIES + (_OF_TEXT if b"json" in source.name.encode() else ())
    for _ in range(chance.randrange(1, 4)):
        if content:
            chance.choice(injuries)(content, chance, sources)
    return Seed(source.name, bytes(content))


Injury = Callable[[bytearray, random.Random, Sequence[Seed]], None]


def _flip_bit(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def _overwrite(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    at, size = _span(content, chance)
    content[at : at + size] = chance.randbytes(size)


def _insert(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    at, size = _span(content, chance)
    content[at:at] = chance.randbytes(size)


def _remove(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    at, size = _span(content, chance)
    del content[at : at + size]


def _cut(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    del content[max(chance.randrange(len(content)), 1) :]


def _make_huge(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    """A number, most likely a length, becomes huge."""
    at, size = _span(content, chance)
    content[at : at + size] = varint(chance.choice(_HUGE))


def _never_end(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    """A number without an end."""
    at, size = _span(content, chance)
    content[at : at + size] = b"\xff" * chance.randrange(1, 12)


def _repeat(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    at = chance.randrange(len(content))
    content[at:at] = content[at : at + chance.randrange(1, 400)] * chance.randrange(1, 5)


def _transplant(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    """A piece of another file."""
    donor = chance.choice(sources).content
    at, from_ = chance.randrange(len(content)), chance.randrange(len(donor))
    content[at : at + chance.randrange(160)] = donor[from_ : from_ + chance.randrange(1, 200)]


def _change_number(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    _replace_token(content, _NUMBER, chance.choice(_NUMBERS), chance)


def _change_text(content: bytearray, chance: random.Random, sources: Sequence[Seed]) -> None:
    """A text, which may be a key, becomes another one of the file, or something else."""
    texts = [match[0] for match in _STRING.finditer(bytes(content))]
    if texts:
        _replace_token(content, _STRING, chance.choice([*texts, b"null", b"{}", b'"\\ud800"', b'""']), chance)


def _replace_token(content: bytearray, token: re.Pattern[bytes], value: bytes, chance: random.Random) -> None:
    places = [match.span() for match in token.finditer(bytes(content))]
    if places:
        start, end = chance.choice(places)
        content[start:end] = value


def _span(content: bytearray, chance: random.Random) -> tuple[int, int]:
    return chance.randrange(len(content)), chance.randrange(1, 9)


_INJURIES: tuple[Injury, ...] = (
    _flip_bit, _overwrite, _insert, _remove, _cut, _make_huge, _never_end, _repeat, _transplant,
)  # fmt: skip
_OF_TEXT: tuple[Injury, ...] = (_change_number, _change_text, _change_number, _change_text)
