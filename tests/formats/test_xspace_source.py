"""A file that is read as the reader goes through it gives what its bytes in memory give."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xspace_build import event, event_name, group, line, number, plane, stat, stat_name

from stepscope.errors import AccessError, UnreadableError
from stepscope.formats import store
from stepscope.formats.xspace import lines
from stepscope.formats.xspace.reader import read
from stepscope.kernels.wire import Source
from stepscope.model import HostTrace

_GROUP = group(15, *40 * [number(1, 1)])  # longer than the head of any other field

# Texts of events stand in lines, names between them; two lines are longer than what is read at once.
FILE = b"".join(
    plane(
        f"/device:GPU:{each}",
        line("stream 1", *(event(1, at=at, stats=[stat(1, f"text {at % 40} of {each}")]) for at in range(8000))),
        event_name(1, f"kernel of {each}"),
        line("stream 2", _GROUP, *(event(1, at=at, stats=[stat(1, "x" * 3000)]) for at in range(9))),
        stat_name(1, "what"),
        _GROUP,
        line("stream " + "3" * 70_000, event(1, at=7)),
    )
    for each in range(2)
)


def source_of(folder: Path, content: bytes) -> Source:
    path = folder / "h.xplane.pb"
    path.write_bytes(content)
    return store.open_source(str(path))


def figures(data: bytes | Source) -> tuple[Any, ...] | str:
    """All that a reader tells of a file."""
    try:
        trace: HostTrace = read(data, "f", "h")
    except UnreadableError as error:
        return str(error)
    columns = [np.asarray(getattr(trace.events, name)).tolist() for name in ("start_ps", "duration_ps", "type", "line")]
    stats = trace.event_stats.name.tolist(), trace.event_stats.value.tolist()
    return (*columns, *stats, list(trace.strings), trace.problems)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PART_BYTES", 10_000)  # many parts, on several threads


def test_a_file_is_read_as_its_bytes_are(tmp_path: Path) -> None:
    found = figures(source_of(tmp_path, FILE))

    assert found == figures(FILE)
    assert "text 7 of 1" in found[6] and "stream " + "3" * 70_000 in found[6]


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_read_as_its_bytes_are(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(FILE[: data.draw(st.integers(0, len(FILE)))])
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(FILE)), st.integers(0, 255)), max_size=6)):
        content[at : at + 1] = bytes([byte]) if at < len(content) else b""

    assert figures(source_of(tmp_path, bytes(content))) == figures(bytes(content))


def test_what_a_file_loses_while_it_is_read_is_missing(tmp_path: Path) -> None:
    source = source_of(tmp_path, FILE)
    os.truncate(tmp_path / "h.xplane.pb", len(FILE) // 3)

    assert figures(source) == figures(FILE[: len(FILE) // 3].ljust(len(FILE), b"\0"))


def test_a_file_that_the_system_stops_reading_is_an_error_with_its_path(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(AccessError, match=r"h\.xplane\.pb"), store.reading("h.xplane.pb"):
            read(Source(None, folder, 10), "f", "h")
    finally:
        os.close(folder)


def test_no_bytes_outside_are_read(tmp_path: Path) -> None:
    source = source_of(tmp_path, b"abc")
    for first, stop in ((-1, 2), (0, 4), (2, 1)):
        with pytest.raises(IndexError):
            source.read(first, stop, bytearray(10))
    with pytest.raises(IndexError, match="no room"):
        source.read(0, 3, bytearray(2))
    assert bytes(source.read(1, 3, bytearray(2))) == b"bc"
    assert (source.head(10), source.take(2).head(10)) == (b"abc", b"ab")
