"""Device memory profiles of JAX: one that JAX writes, drawn ones, and damaged ones."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.errors import UnreadableError
from stepscope.formats.jax_memory.reader import read
from stepscope.formats.sniffing import sniff
from stepscope.formats.xspace.encode import delimited_head, varint

TEXTS = ["", "allocations", "count", "space", "bytes", "kind", "buffer", "device", "gpu:0", "train.py", "load"]
LIBRARY = ["/usr/lib/python3.11/site-packages/jax/_src/core.py", "bind"]


def field(number: int, *values: int) -> bytes:
    return b"".join(varint(number << 3) + varint(value) for value in values)


def message(number: int, content: bytes) -> bytes:
    return delimited_head(number, len(content)) + content


def sample(count: int, size: int) -> bytes:
    """An allocation of `load`, below the library's function that it calls."""
    labels = message(3, field(1, 5) + field(2, 6)) + message(3, field(1, 7) + field(2, 8))
    return message(2, field(1, 2, 1) + field(2, count, size) + labels)


def drawn(*samples: bytes, texts: list[str] | None = None) -> bytes:
    types = message(1, field(1, 1) + field(2, 2)) + message(1, field(1, 3) + field(2, 4))
    functions = message(5, field(1, 1) + field(2, 10) + field(4, 9)) + message(
        5, field(1, 2) + field(2, 12) + field(4, 11)
    )
    locations = b"".join(message(4, field(1, number) + message(4, field(1, number) + field(2, 7))) for number in (1, 2))
    listed = [*(texts or TEXTS), *LIBRARY]
    return types + b"".join(samples) + locations + functions + b"".join(message(6, text.encode()) for text in listed)


def memories(path: Path) -> list[dict[str, Any]]:
    return list(stepscope.load(path).memory_profile().to_dict()["memories"])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_is_alive_is_shown_by_the_line_of_the_program(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "host7.memory.prof"
    path.write_bytes(pack(drawn(sample(2, 2001), sample(1, 500))))

    (found,) = memories(path)
    assert (found["id"], found["host"], found["allocations"]) == ("gpu:0", "host7", 3)
    assert found["peak"]["heap_bytes"] == 2501
    (row,) = found["breakdown"]
    assert (row["op"], row["allocated_bytes"], row["occurrences"]) == ("train.py(7): load", 2501, 3)
    assert row["region"] == "buffer"


def test_a_great_number_of_allocations_is_one_event() -> None:
    trace = read(drawn(sample(1 << 40, 1 << 41)), "x", "h")
    assert len(trace.events) == 1
    assert trace.stat_ints(("Bytes", "allocation_bytes")).tolist() == [1 << 41]


def test_a_profile_is_known_by_its_content_and_others_are_not(tmp_path: Path) -> None:
    known = sniff(gzip.compress(drawn(sample(1, 5))))
    assert known is not None and known.name == "jax-memory"
    path = tmp_path / "strange.bin"
    path.write_bytes(drawn(sample(1, 5)))
    assert memories(path)[0]["allocations"] == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "counts nothing"),
        (drawn(sample(1, 5))[:-3], "cut short"),
        (gzip.compress(drawn(sample(1, 5)))[:-9], "cut short"),
        (drawn(sample(1, 5), texts=["", "samples", "count", "cpu", "nanoseconds", *TEXTS[5:]]), "it counts samples"),
        (b"\x0a\x04\x08\x01\x10\x02" + b"\xff" * 20, "cannot be read"),
        (b"\x1f\x8bno gzip", "cannot be read"),
    ],
)
def test_what_is_no_such_profile_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        read(data, "x", "h")


def test_other_tools_point_to_the_memory_profile(tmp_path: Path) -> None:
    path = tmp_path / "memory.prof"
    path.write_bytes(drawn(sample(1, 5)))
    with pytest.raises(UnreadableError, match=r"stepscope memory-profile .*memory\.prof"):
        stepscope.load(path).steps()


def hold() -> Any:
    import jax.numpy as jnp

    return [jnp.ones((256, 256)), jnp.ones((256, 256))]


def test_a_profile_that_jax_writes_names_the_line_that_holds_memory(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    held = hold()
    path = tmp_path / "memory.prof"
    jax.profiler.save_device_memory_profile(str(path))

    rows = [row for memory in memories(path) for row in memory["breakdown"]]
    here = [row for row in rows if "test_jax_memory.py" in str(row["op"])]
    assert sum(row["allocated_bytes"] for row in here) >= 2 * held[0].nbytes
    assert any(row["op"].endswith("): hold") for row in here)
