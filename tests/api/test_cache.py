"""The cache: what is put there comes back, or nothing does; never an error and never something else."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import platformdirs
import pytest

from stepscope import cache as cache_module
from stepscope.cache import DEFAULT_MAX_BYTES, Cache, CacheOptions, cache_key
from stepscope.formats import store
from stepscope.shelf import Recent

KEY = "0" * 32
OTHER = "1" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cache(folder: Path) -> Cache:
    return Cache(CacheOptions(folder))


def entry(folder: Path, name: str, key: str = KEY) -> Path:
    return folder / "v1" / key / name


def left(folder: Path) -> list[str]:
    """The files there are, besides the ledger."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != "ledger"
    )


# ---- keys ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    name: str
    is_certain: bool = True


def test_a_key_depends_on_files_parameters_and_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def keys() -> list[str | None]:
        return [
            cache_key([File("a")], "overview"),
            cache_key([File("b")], "overview"),
            cache_key([File("a"), File("b")], "overview"),
            cache_key([File("b"), File("a")], "overview"),
            cache_key([File("a")], "overview", 1),
            cache_key([File("a")], "overview", "1"),
        ]

    before = keys()
    assert len(set(before)) == 6
    assert before == keys()
    monkeypatch.setattr(cache_module, "_code_version", lambda: "newer")
    assert not set(before) & set(keys())


def test_a_file_that_could_change_unseen_has_no_key() -> None:
    assert cache_key([File("a"), File("b", is_certain=False)]) is None


def test_a_changed_profile_has_another_key(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.xplane.pb")
    path.write_bytes(b"one")
    before = cache_key([store.identity(str(path))])
    path.write_bytes(b"other")
    assert cache_key([store.identity(str(path))]) != before


def test_the_code_version_changes_with_the_sources(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("1")
    before = cache_module._stamp_of_sources(tmp_path)
    (tmp_path / "a" / "notes.txt").write_text("not code")
    assert cache_module._stamp_of_sources(tmp_path) == before
    (tmp_path / "a" / "x.py").write_text("12")
    assert cache_module._stamp_of_sources(tmp_path) != before


# ---- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"result", bytes(range(256)) * 1000])
def test_bytes_come_back(cache: Cache, data: bytes) -> None:
    cache.put_bytes(KEY, "overview", data)
    assert cache.get_bytes(KEY, "overview") == data
    assert cache.get_bytes(KEY, "steps") is None
    assert cache.get_bytes(OTHER, "overview") is None


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b"])
def test_a_name_cannot_lead_elsewhere(cache: Cache, name: str) -> None:
    with pytest.raises(ValueError, match="not a name for a cache entry"):
        cache.put_bytes(KEY, name, b"")


def test_without_a_key_nothing_is_kept(cache: Cache, folder: Path) -> None:
    cache.put_bytes(None, "overview", b"x")
    cache.put_columns(None, "events", {"a": np.zeros(1)})
    assert cache.get_bytes(None, "overview") is None
    assert cache.get_columns(None, "events") is None
    assert not folder.exists()


def test_reading_bytes_imports_nothing_heavy(folder: Path, cache: Cache) -> None:
    cache.put_bytes(KEY, "overview", b"result")
    code = (
        "import sys; from stepscope.cache import Cache, cache_key; cache_key([]);"
        f"print(Cache().get_bytes('{KEY}', 'overview'));"
        "print(sorted({'numpy', 'pyarrow', 'platformdirs'} & set(sys.modules)))"
    )
    environment = os.environ | {"STEPSCOPE_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["b'result'", "[]"]


# ---- columns ---------------------------------------------------------------------------------------------------------

COLUMNS: dict[str, np.ndarray[Any, Any]] = {
    "start_ps": np.array([5, -1, 2**62], np.int64),
    "kind": np.array([1, 2, 3, 4, 5], np.uint8),
    "ratio": np.array([[0.5, 1.0], [1.5, 2.0]]),
    "nothing": np.empty(0, np.int32),
    "flag": np.array([True, False]),
    "one": np.array(7, np.int16),
    "text": np.array([b"ab", b"c"]),
    "big": np.array([1, 2], ">u4"),
    "every_other": np.arange(10)[::2],
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
}


def test_columns_of_any_length_shape_and_plain_type_come_back(cache: Cache) -> None:
    cache.put_columns(KEY, "events", COLUMNS)
    found = cache.get_columns(KEY, "events")
    assert found is not None
    assert list(found) == list(COLUMNS)
    for name, column in COLUMNS.items():
        assert (found[name].dtype, found[name].shape) == (column.dtype, column.shape)
        np.testing.assert_array_equal(found[name], column)


def test_columns_lie_in_the_file_and_cannot_be_changed(cache: Cache, folder: Path) -> None:
    cache.put_columns(KEY, "events", {"a": np.arange(1000)})
    found = cache.get_columns(KEY, "events")
    assert found is not None
    assert found["a"].base is not None
    assert not found["a"].flags.writeable
    assert found["a"].ctypes.data % 64 == 0
    entry(folder, "events.columns").unlink()
    assert found["a"].sum() == 499_500


def test_some_columns_can_be_read_alone(cache: Cache) -> None:
    cache.put_columns(KEY, "events", COLUMNS)
    found = cache.get_columns(KEY, "events", only=["kind", "flag"])
    assert found is not None
    assert list(found) == ["kind", "flag"]
    with pytest.raises(KeyError, match="absent"):
        cache.get_columns(KEY, "events", only=["absent"])


@pytest.mark.parametrize("array", [np.array([None]), np.array([(1, 2)], [("a", "i4"), ("b", "i4")])])
def test_arrays_of_objects_are_refused(cache: Cache, array: np.ndarray[Any, Any]) -> None:
    with pytest.raises(TypeError, match="column 'a' cannot be kept"):
        cache.put_columns(KEY, "events", {"a": array})


# ---- damage ----------------------------------------------------------------------------------------------------------


def damaged(whole: bytes) -> list[bytes]:
    """The content with each byte flipped in turn, cut at each length, and with a byte too many."""
    flipped = [whole[:n] + bytes([whole[n] ^ 0x40]) + whole[n + 1 :] for n in range(len(whole))]
    return [*flipped, *(whole[:n] for n in range(len(whole))), whole + b"\0"]


def test_damaged_bytes_are_absent_and_removed(cache: Cache, folder: Path) -> None:
    cache.put_bytes(KEY, "overview", b"result")
    path = entry(folder, "overview.bytes")
    for content in damaged(path.read_bytes()):
        path.write_bytes(content)
        assert cache.get_bytes(KEY, "overview") is None
        assert not path.exists()


def test_damaged_columns_are_absent_and_removed(cache: Cache, folder: Path) -> None:
    cache.put_columns(KEY, "events", {"a": np.arange(3, dtype=np.int8), "b": np.array([1.5, 2.5])})
    path = entry(folder, "events.columns")
    for content in damaged(path.read_bytes()):
        path.write_bytes(content)
        assert cache.get_columns(KEY, "events") is None
        assert not path.exists()


# ---- writing ---------------------------------------------------------------------------------------------------------


def test_a_failed_write_leaves_what_was_there(cache: Cache, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put_bytes(KEY, "overview", b"one")

    def fail(self: Path, target: Path) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    cache.put_bytes(KEY, "overview", b"two")
    assert left(folder) == [f"v1/{KEY}/overview.bytes"]
    assert cache.get_bytes(KEY, "overview") == b"one"


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ("mkdir", PermissionError(errno.EACCES, "Permission denied")),
        ("open", OSError(errno.EROFS, "Read-only file system")),
        ("open", OSError(errno.ENOSPC, "No space left on device")),
    ],
)
def test_an_unwritable_cache_is_a_miss_and_told_once(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, operation: str, error: OSError
) -> None:
    def fail(self: Path, *_: object, **__: object) -> NoReturn:
        raise error

    monkeypatch.setattr(Path, operation, fail)
    cache.put_bytes(KEY, "overview", b"x")
    cache.put_columns(KEY, "events", COLUMNS)
    Cache(CacheOptions(cache.folder)).put_bytes(KEY, "overview", b"x")  # that of another profile
    assert cache.get_bytes(KEY, "overview") is None
    assert cache.get_columns(KEY, "events") is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "the cache could not be written" in record.getMessage()
    assert "STEPSCOPE_CACHE=off" in record.getMessage()


def test_an_unreadable_entry_is_a_miss_and_told_once(
    cache: Cache, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry(folder, "overview.bytes").mkdir(parents=True)
    entry(folder, "events.columns").mkdir(parents=True)
    assert cache.get_bytes(KEY, "overview") is None
    assert cache.get_columns(KEY, "events") is None
    (record,) = caplog.records
    assert "the cache could not be read" in record.getMessage()


def test_a_cache_that_may_be_read_only_still_answers(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put_bytes(KEY, "overview", b"one")

    def fail(*_: object, **__: object) -> NoReturn:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "utime", fail)
    assert cache.get_bytes(KEY, "overview") == b"one"


WRITER = """
import sys
import numpy as np
from stepscope.cache import Cache
value, rounds = int(sys.argv[1]), int(sys.argv[2])
cache = Cache()
for n in range(rounds):
    cache.put_bytes("0" * 32, "overview", bytes([value]) * 100_000)
    cache.put_columns("0" * 32, "events", {"a": np.full(20_000, value), "b": np.full(7, value)})
"""


def test_two_processes_write_one_entry_and_a_reader_sees_only_whole_ones(folder: Path, cache: Cache) -> None:
    cache.put_bytes(KEY, "overview", bytes([1]) * 100_000)
    cache.put_columns(KEY, "events", {"a": np.full(20_000, 1), "b": np.full(7, 1)})
    environment = os.environ | {"STEPSCOPE_CACHE_DIR": str(folder)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, value, "60"], env=environment, stderr=subprocess.PIPE, text=True
        )
        for value in "12"
    ]
    seen = set()
    deadline = time.monotonic() + 120
    while any(writer.poll() is None for writer in writers):
        assert time.monotonic() < deadline, "the writers are stuck"
        data = cache.get_bytes(KEY, "overview")
        columns = cache.get_columns(KEY, "events")
        assert data is not None
        assert columns is not None
        (value,) = set(data)
        assert set(columns["a"]) == set(columns["b"])
        seen.add(value)
    # Nor was either of them in the other's way: a failed write would have been logged.
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [("", 0), ("", 0)]
    assert seen <= {1, 2}
    assert left(folder) == [f"v1/{KEY}/events.columns", f"v1/{KEY}/overview.bytes"]


# ---- size ------------------------------------------------------------------------------------------------------------


def put(folder: Path, key: str, size: int, used: int) -> None:
    """Writes an entry of about a size, used at a time."""
    Cache(CacheOptions(folder)).put_bytes(key, "data", bytes(size))
    os.utime(entry(folder, "data.bytes", key), (used, used))


def test_entries_not_used_for_longest_go_first(folder: Path) -> None:
    keys = [f"{n:032x}" for n in range(9)]
    for n, key in enumerate(keys):
        put(folder, key, 1000, used=100 + n)
    assert Cache(CacheOptions(folder)).get_bytes(keys[0], "data") == bytes(1000)
    Cache(CacheOptions(folder, max_bytes=6000)).put_bytes(KEY[:-1] + "f", "data", bytes(1000))
    kept = {path.split("/")[1] for path in left(folder)}
    assert kept == {keys[0], keys[7], keys[8], KEY[:-1] + "f"}


def test_the_cache_stays_below_its_bound_without_a_sweep_at_each_put(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeps = []
    real = cache_module._sweep

    def counting(folder: Path, max_bytes: int) -> int:
        sweeps.append(folder)
        return real(folder, max_bytes)

    monkeypatch.setattr(cache_module, "_sweep", counting)
    cache = Cache(CacheOptions(folder, max_bytes=20_000))
    for n in range(200):
        cache.put_bytes(f"{n:032x}", "data", bytes(1000))
        assert sum(path.stat().st_size for path in folder.rglob("*.bytes")) <= 20_000
    assert 20 < len(sweeps) < 100


def test_a_sweep_counts_other_versions_and_touches_nothing_else(folder: Path) -> None:
    for name in ("v0/" + KEY + "/old.bytes", "v1/notes.txt", "photo.bytes", "v1/" + KEY + "/mine.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes(5000))
    Cache(CacheOptions(folder, max_bytes=4000)).put_bytes(OTHER, "data", bytes(1000))
    assert left(folder) == ["photo.bytes", f"v1/{KEY}/mine.txt", f"v1/{OTHER}/data.bytes", "v1/notes.txt"]


def test_what_killed_writers_left_is_removed_when_it_is_old(folder: Path) -> None:
    fresh, stale = (entry(folder, f"data.bytes.12-{digit * 12}.tmp") for digit in "ab")
    fresh.parent.mkdir(parents=True)
    fresh.touch()
    stale.touch()
    os.utime(stale, (time.time() - 7200,) * 2)
    Cache(CacheOptions(folder)).put_bytes(OTHER, "data", b"")
    assert (fresh.exists(), stale.exists()) == (True, False)


@pytest.mark.parametrize("content", [b"", b"\x01", b"\xff" * 80, bytes(1 << 20)])
def test_a_lost_damaged_or_long_ledger_is_made_anew(folder: Path, content: bytes) -> None:
    put(folder, KEY, 3000, used=100)
    (folder / "ledger").write_bytes(content)
    Cache(CacheOptions(folder, max_bytes=3500)).put_bytes(OTHER, "data", bytes(1000))
    Cache(CacheOptions(folder, max_bytes=3500)).put_bytes(OTHER, "more", bytes(1000))
    assert sum(path.stat().st_size for path in folder.rglob("*.bytes")) <= 3500
    assert (folder / "ledger").stat().st_size <= 24


def test_a_folder_that_a_sweep_removed_meanwhile_is_made_again(
    cache: Cache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.mkdir
    removed: list[Path] = []

    def then_remove(self: Path, *args: Any, **options: Any) -> None:
        real(self, *args, **options)
        if not removed and self.name == KEY:
            removed.append(self)
            self.rmdir()

    monkeypatch.setattr(Path, "mkdir", then_remove)
    cache.put_bytes(KEY, "overview", b"x")
    assert removed
    assert cache.get_bytes(KEY, "overview") == b"x"


# ---- the environment -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["off", "OFF", "0", "no"])
def test_the_cache_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, folder: Path, value: str) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", value)
    monkeypatch.setenv("STEPSCOPE_CACHE_DIR", str(folder))
    cache = Cache()
    cache.put_bytes(KEY, "overview", b"x")
    assert (cache.folder, cache.get_bytes(KEY, "overview"), folder.exists()) == (None, None, False)


def test_the_folder_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE_DIR", str(tmp_path / "here"))
    assert Cache().folder == tmp_path / "here"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STEPSCOPE_CACHE_DIR", "~/there")
    assert Cache().folder == tmp_path / "there"


@pytest.mark.parametrize("chosen", [None, "", "elsewhere"])
def test_the_folder_is_the_users_cache_directory_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: str | None
) -> None:
    monkeypatch.delenv("STEPSCOPE_CACHE_DIR", raising=False)
    if chosen is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", chosen and str(tmp_path / chosen))
    assert Cache().folder == Path(platformdirs.user_cache_dir("stepscope", appauthor=False))


def test_without_a_home_directory_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPSCOPE_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert Cache().folder is None


@pytest.mark.parametrize(
    ("text", "size", "warnings"),
    [("", DEFAULT_MAX_BYTES, 0), ("5000", 5000, 0), ("2GiB", DEFAULT_MAX_BYTES, 1), ("-1", DEFAULT_MAX_BYTES, 1)],
)
def test_the_bound_is_chosen_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str, size: int, warnings: int
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE_MAX_BYTES", text)
    assert CacheOptions.from_environment().max_bytes == size
    assert len(caplog.records) == warnings


def test_an_entry_larger_than_the_bound_is_not_kept(folder: Path) -> None:
    cache = Cache(CacheOptions(folder, max_bytes=1000))
    cache.put_bytes(KEY, "data", bytes(1000))
    assert cache.get_bytes(KEY, "data") is None


def test_the_least_recently_used_value_goes() -> None:
    kept: Recent[str, int] = Recent(2)
    kept.put("a", 1)
    kept.put("b", 2)
    kept.get("a")

    assert kept.put("c", 3) == 3
    assert [kept.get(key) for key in "abc"] == [1, None, 3]
