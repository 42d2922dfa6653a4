"""XSpaces of several processes in one file."""

from __future__ import annotations

from pathlib import Path

import pytest
from draw import draw

import stepscope
from stepscope.errors import UnreadableError
from stepscope.formats.xspace.several import holds_several, read_hosts
from stepscope.formats.xspace.writer import write

ONE = """
    host main | M0---M1---
    gpu0 s    |  k--  k--
"""
OTHER = """
    host main | M0------M1------
    gpu0 s    |  k-----  k-----
"""


def profile(picture: str, host: str) -> bytes:
    return write(draw(picture, host=host))


def test_profiles_that_were_joined_are_a_host_each(tmp_path: Path) -> None:
    path = tmp_path / "joined.xplane.pb"
    path.write_bytes(profile(ONE, "a") + profile(OTHER, "b"))
    loaded = stepscope.load(path)

    assert loaded.hosts == ("a", "b")
    assert [row["duration_ms"] for row in stepscope.load(path, host="b").steps().to_dict()["rows"]] == [8.0, 8.0]
    assert any("holds the profiles of 2 processes" in warning for warning in loaded.overview().to_dict()["warnings"])


def test_hosts_of_one_name_are_told_apart() -> None:
    traces = read_hosts(profile(ONE, "a") + profile(ONE, "a"), "x", "")
    assert [trace.host for trace in traces] == ["a", "a_2"]


def test_a_file_of_one_process_is_known_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(profile(ONE, "a"))
    assert not holds_several(str(path))
    path.write_bytes(profile(ONE, "a") + profile(OTHER, "b"))
    assert holds_several(str(path))
    assert not holds_several(str(tmp_path / "nothing"))


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40, b"\x0a"])
def test_what_is_behind_the_first_may_be_damaged(damage: bytes) -> None:
    whole = profile(ONE, "a") + profile(OTHER, "b")
    assert [trace.host for trace in read_hosts(whole + damage, "x", "")] == ["a", "b"]


def test_nothing_that_can_be_read_is_an_error() -> None:
    with pytest.raises(UnreadableError):
        read_hosts(b"\x00" * 100, "x", "h")
