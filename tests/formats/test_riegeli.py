"""The reader of profiles in Riegeli files: whatever way they are packed, the trace is that of the XSpace in them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from riegeli_build import (
    BLOCK,
    CODECS,
    highway_hash,
    riegeli_file,
    simple_chunk,
    split_space,
    transposed_chunk,
)
from xspace_build import event, event_name, line, plane

import stepscope
from stepscope.errors import UnreadableError
from stepscope.formats.base import format_from_prefix, format_of
from stepscope.formats.riegeli.reader import read
from stepscope.formats.session import find_sessions
from stepscope.formats.xspace.reader import read as read_xspace
from stepscope.kernels import riegeli as kernel
from stepscope.model import HostTrace

Make = Callable[..., tuple[str, bytes, int, int]]
CORPUS = ("tf-gpu-multi-worker", "jax-mi300x-conv", "tpu-inference")
MESSAGES = ((1,), (1, 3), (1, 3, 4), (1, 3, 4, 4), (1, 4), (1, 4, 2), (1, 5), (1, 5, 2))  # of an XSpace
SIGNATURE = """
    83 af 70 d1 0d 88 4a 3f 00 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00 91 ba c2 3c 92 87 e1 a9
    00 00 00 00 00 00 00 00 e1 9f 13 c0 e9 b1 c3 72 73 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
"""


def transposed(records: list[bytes], codec: str = "brotli") -> tuple[str, bytes, int, int]:
    return transposed_chunk(records, codec, MESSAGES)


def space(events: int = 3, name: bytes = b"/host:CPU", first: int = 0) -> bytes:
    """An XSpace with one line of events, one every us."""
    rows = [event(1, (first + k) * 1_000_000, 500_000) for k in range(events)]
    return plane(name, line(b"main", *rows, line_id=7), event_name(1, b"op"))


def read_back(data: bytes) -> HostTrace:
    found = read(data, "a.xplane.riegeli", "")
    found.check()
    return found


def same(one: HostTrace, other: HostTrace) -> bool:
    """Whether two traces have the same tables."""
    columns = {
        "events": ("start_ps", "duration_ps", "type", "line", "kind", "traits"),
        "event_stats": ("name", "tag", "value", "offsets"),
        "lines": ("plane", "line_id", "name", "kind", "event_begin", "event_end"),
        "planes": ("name", "kind", "ordinal"),
        "strings": ("blob", "offsets"),
    }
    return all(
        np.array_equal(getattr(getattr(one, table), name), getattr(getattr(other, table), name))
        for table, names in columns.items()
        for name in names
    )


def codes(found: HostTrace) -> list[str]:
    return [problem.code for problem in found.problems]


# ---- the specification -----------------------------------------------------------------------------------------------


def test_the_checksum_is_highway_hash():
    """Values of the test that comes with HighwayHash: 0, 1, 2, ... under this key."""
    key = np.array([0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x1716151413121110, 0x1F1E1D1C1B1A1918], np.uint64)
    known = {0: 0x907A56DE22C26E53, 3: 0x5C6BEFAB8A463D80, 7: 0x4D02AE1738F59482, 18: 0x04DD90A69C565CC2}
    known |= {31: 0x9FC7007CCF035A68, 32: 0xA0C964D9ECD580FC}

    assert {size: kernel.highway_hash(np.arange(size, dtype=np.uint8), key) for size in known} == known


def test_the_writer_of_these_tests_follows_the_specification():
    assert riegeli_file([])[:64] == bytes.fromhex(SIGNATURE)
    assert len(riegeli_file([simple_chunk([b"x" * 100_000])])) % BLOCK == 0
    key = [int.from_bytes(text, "little") for text in (b"Riegeli/", b"records\n") * 2]
    for size in (0, 5, 33, 100):
        data = bytes(range(size))
        assert highway_hash(data) == kernel.highway_hash(np.frombuffer(data, np.uint8), np.array(key, np.uint64))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("make", [simple_chunk, transposed])
def test_every_chunk_and_compression(make: Make, codec: str):
    whole = space(events=200)
    assert same(read_back(riegeli_file([make([whole], codec)])), read_xspace(whole, "a", ""))


def test_records_that_are_no_messages_do_not_hide_others():
    """A transposed chunk keeps them beside the fields of messages; here they are the halves of one."""
    whole = space(events=5)
    found = read_back(riegeli_file([transposed([whole[:3], whole[3:]], "zstd")]))
    assert same(found, read_xspace(whole, "a", ""))


@pytest.mark.parametrize("size", [BLOCK - 200, BLOCK - 64 - 40 - 24, BLOCK, 3 * BLOCK + 17])
def test_block_headers_fall_anywhere(size: int):
    """Also inside the header of a chunk."""
    filler = plane(b"#filler", line(b"x" * size))
    whole = space()
    found = read_back(riegeli_file([simple_chunk([filler], "none"), simple_chunk([whole], "none")]))
    assert same(found, read_xspace(filler + whole, "a", ""))


def test_files_that_were_appended_are_one():
    """As XLA writes a profile: part after part, each a whole file that ends with a block."""
    parts = [space(name=b"/host:CPU"), space(name=b"/device:GPU:0")]
    data = b"".join(riegeli_file([simple_chunk([part])]) for part in parts)
    assert same(read_back(data), read_xspace(b"".join(parts), "a", ""))


def test_a_plane_in_several_parts_is_one():
    parts = [space(2), space(2, name=b"/device:GPU:0"), space(3, first=2)]
    found = read_back(riegeli_file([simple_chunk([part]) for part in parts]))

    assert [found.plane_name(row) for row in range(len(found.planes))] == ["/host:CPU", "/device:GPU:0"]
    assert [found.line_name(row) for row in range(len(found.lines))] == ["main", "main"]
    assert (found.events.start_ps // 1_000_000).tolist() == [0, 1, 2, 3, 4, 0, 1]
    assert found.problems == ()


@pytest.mark.parametrize("profile", CORPUS)
@pytest.mark.parametrize(("make", "codec"), [(simple_chunk, "brotli"), (transposed, "zstd")])
def test_real_profiles_give_what_their_xspace_gives(corpus: Path, tmp_path: Path, profile: str, make: Make, codec: str):
    """In three parts; every tool says the same."""
    (file, *_) = sorted((corpus / profile).rglob("*.xplane.pb"))
    whole = file.read_bytes()
    (tmp_path / "p").mkdir()
    (tmp_path / "r").mkdir()
    (tmp_path / "p" / "host.xplane.pb").write_bytes(whole)
    parts = split_space(whole, 3)
    (tmp_path / "r" / "host.xplane.riegeli").write_bytes(riegeli_file([make([part], codec) for part in parts]))
    wanted, found = (stepscope.load(tmp_path / name) for name in "pr")

    assert same(found.trace("host"), wanted.trace("host"))
    for tool in ("overview", "steps", "op_stats", "kernel_stats", "idle", "roofline", "memory_profile", "hlo_stats"):
        assert without_paths(getattr(found, tool)().to_dict()) == without_paths(getattr(wanted, tool)().to_dict()), tool


def without_paths(report: dict[str, Any]) -> str:
    return str(report).replace("xplane.riegeli", "xplane.pb").replace("/r/", "/p/")


def test_xprof_reads_what_these_tests_write(corpus: Path, tmp_path: Path):
    """So the chunks are as Riegeli's own reader wants them, which XProf has in it."""
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")
    (file, *_) = sorted((corpus / "tf-gpu-multi-worker").rglob("*.xplane.pb"))
    parts = split_space(file.read_bytes(), 3)
    files = {
        "a.xplane.pb": file.read_bytes(),
        "b.xplane.riegeli": riegeli_file([simple_chunk([part]) for part in parts]),
        "c.xplane.riegeli": riegeli_file([transposed([part], "zstd") for part in parts]),
    }
    answers = set()
    for name, content in files.items():
        (tmp_path / name[0]).mkdir()
        (tmp_path / name[0] / name).write_bytes(content)
        answers.add(convert.xspace_to_tool_data([str(tmp_path / name[0] / name)], "kernel_stats", {})[0])

    assert len(answers) == 1


# ---- damage ----------------------------------------------------------------------------------------------------------

PARTS = [space(50, name=b"/host:CPU"), space(50, name=b"/device:GPU:0"), space(50, name=b"/device:GPU:1")]


def whole_file(codec: str = "none") -> bytes:
    return riegeli_file([simple_chunk([part], codec) for part in PARTS], padded=False)


@pytest.mark.parametrize("codec", ["none", "brotli", "zstd"])
def test_a_cut_file_gives_what_is_before_the_cut(codec: str):
    data = whole_file(codec)
    counts = []
    for size in range(0, len(data), 5):
        try:
            found = read_back(data[:size])
        except UnreadableError:
            counts.append(0)
            continue
        counts.append(len(found.events))
        assert codes(found)[:1] in ([], ["truncated"])
    assert counts == sorted(counts)
    assert counts[-1] >= 100


def test_a_cut_chunk_gives_its_start():
    data = riegeli_file([simple_chunk([space(20_000)], "none")])
    found = read_back(data[: len(data) // 2])

    assert 5_000 < len(found.events) < 15_000
    assert codes(found) == ["truncated"]
    assert found.problems[0].reason == "the file ends inside the chunk that starts here"


@pytest.mark.parametrize(("where", "left"), [("data", 100), ("header", 0)])
def test_a_wrong_checksum_costs_its_chunk(where: str, left: int):
    """Behind a damaged header reading goes on where the next block says; here there is none."""
    data = bytearray(whole_file())
    begin = data.index(PARTS[0])
    data[begin if where == "data" else begin - 30] ^= 1
    if not left:
        with pytest.raises(UnreadableError, match="a header with a wrong checksum"):
            read_back(bytes(data))
        return
    found = read_back(bytes(data))

    assert len(found.events) == left
    assert codes(found) == ["damaged"]
    assert "a chunk with a wrong checksum" in found.problems[0].reason


def test_reading_goes_on_behind_a_damaged_header():
    filler = plane(b"#filler", line(b"x" * (2 * BLOCK)))
    data = bytearray(riegeli_file([simple_chunk([part], "none") for part in (filler, *PARTS)]))
    data[64 + 8] ^= 1
    found = read_back(bytes(data))

    assert len(found.events) == 150
    assert codes(found) == ["damaged"]


def test_unknown_compression_and_unknown_chunks_are_named():
    kind, data, records, size = simple_chunk([PARTS[0]], "none")
    odd = riegeli_file([simple_chunk([PARTS[1]]), (kind, b"q" + data[1:], records, size), ("w", data, records, size)])
    found = read_back(odd)

    assert len(found.events) == 50
    assert found.problems[0].reason == "2 chunks could not be read; the first is a chunk with unknown compression 'q'"


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_transposed_chunk_is_a_reason(seed: int):
    """Its checksum is right, so all of it is looked at: states, buffers, steps."""
    chance = np.random.default_rng(seed)
    kind, data, records, size = transposed([space(30)], "none")
    broken = bytearray(data)
    for _ in range(1 + seed % 3):
        broken[int(chance.integers(len(broken)))] = int(chance.integers(256))
    try:
        read_back(riegeli_file([(kind, bytes(broken), records, size), simple_chunk([PARTS[0]])]))
    except UnreadableError as error:
        pytest.fail(f"the other chunk is sound: {error}")


def test_damaged_chunks_leave_no_memory_behind():
    """Each has a broken block; what was set aside for it has to be given back."""
    kind, data, records, size = transposed([space(2000)], "zstd")
    broken = data[: len(data) // 2] + bytes(len(data) - len(data) // 2)
    content = riegeli_file([(kind, broken, records, size), simple_chunk([PARTS[0]])])
    tracemalloc.start()
    try:
        for _ in range(20):
            assert read_back(content).partial
        assert tracemalloc.get_traced_memory()[0] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_chunk_that_claims_to_be_endless_is_refused():
    kind, data, records, _ = simple_chunk([PARTS[0]])
    with pytest.raises(UnreadableError, match="unpack to"):
        read_back(riegeli_file([(kind, data, records, 1 << 50)]))


@pytest.mark.parametrize(
    "data", [b"", b"text", bytes(200_000), riegeli_file([]), riegeli_file([simple_chunk([b"no"])])]
)
def test_what_holds_no_profile_is_refused(data: bytes):
    with pytest.raises(UnreadableError, match="no part of an XSpace"):
        read(data, "a.xplane.riegeli", "")


# ---- names and folders -----------------------------------------------------------------------------------------------


def test_names_and_content():
    found = format_of("host-1.xplane.riegeli")
    assert found is not None
    assert found.host_of("host-1.xplane.riegeli") == "host-1"
    assert format_from_prefix(whole_file()[:100]) is found


def test_a_run_is_found_in_a_logdir(tmp_path: Path):
    run = tmp_path / "plugins" / "profile" / "2026_11_21_03_53_27"
    run.mkdir(parents=True)
    (run / "a.xplane.riegeli").write_bytes(whole_file())
    (run / "b.xplane.pb").write_bytes(PARTS[0])
    (session,) = find_sessions(tmp_path)

    assert session.hosts == ("a", "b")
