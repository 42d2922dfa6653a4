"""Files and folders, local and remote.  fsspec's `memory://` stands for the remote stores."""

from __future__ import annotations

import builtins
import errno
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import fsspec
import pytest

from stepscope.errors import AccessError, NotFoundError, StepscopeError
from stepscope.formats import store


@pytest.fixture
def memory() -> Iterator[str]:
    """An empty remote store."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield "memory://bucket"
    system.store.clear()


@pytest.fixture(params=["local", "remote"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty folder, once on this machine and once in a store."""
    return str(tmp_path) if request.param == "local" else str(request.getfixturevalue("memory"))


def put(path: str, data: bytes = b"") -> str:
    with fsspec.open(path, "wb", auto_mkdir=True) as file:
        file.write(data)
    return path


def draw(root: str, *names: str) -> None:
    for name in names:
        put(f"{root}/{name}")


def shown(walk: store.Walk, root: str) -> list[str]:
    """Each folder with its files, as `a/b: x y`."""
    return [
        f"{folder.path.removeprefix(root).strip('/') or '.'}: {' '.join(file.name for file in folder.files)}".strip()
        for folder in walk.folders
    ]


def refuse(patch: pytest.MonkeyPatch, name: str, part: str, code: int = errno.EACCES) -> None:
    """Lets a function of `os` fail for paths with a certain part.  Permissions would not stop the superuser."""
    real: Callable[..., Any] = getattr(os, name)

    def refusing(path: Any, *args: Any, **options: Any) -> Any:
        if part in str(path):
            raise OSError(code, os.strerror(code), str(path))
        return real(path, *args, **options)

    patch.setattr(os, name, refusing)


# ---- files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_read_whole_or_in_part(root: str) -> None:
    path = put(f"{root}/a.bin", b"0123456789")
    assert store.read_bytes(path) == b"0123456789"
    assert store.read_buffer(path) == b"0123456789"
    assert store.read_buffer(put(f"{root}/empty.bin", b"")) == b""
    assert store.read_prefix(path, 4) == b"0123"
    assert store.read_prefix(path, 400) == b"0123456789"


def test_what_is_at_a_path(root: str) -> None:
    put(f"{root}/a/b.bin", b"x")
    assert [store.kind(f"{root}/{name}") for name in ("a", "a/b.bin", "c")] == ["folder", "file", None]


def test_a_missing_file_is_told_with_its_path(root: str) -> None:
    for read in (store.read_bytes, store.read_buffer, store.identity):
        with pytest.raises(NotFoundError) as caught:
            read(f"{root}/absent")
        assert caught.value.problem.path == f"{root}/absent"


@pytest.mark.parametrize("read", [store.read_bytes, store.read_buffer], ids=["bytes", "buffer"])
@pytest.mark.parametrize(("before", "after"), [(b"0123456789", b"012"), (b"012", b"0123456789")], ids=["less", "more"])
def test_of_a_file_that_changes_while_it_is_read_no_more_is_read_than_there_was(
    read: Callable[[str], Any], before: bytes, after: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(before)
    real = os.fstat

    def then_change(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        path.write_bytes(after)
        return status

    monkeypatch.setattr(os, "fstat", then_change)
    assert read(str(path)) == b"012"


def test_a_pipe_is_refused_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert store.kind(str(tmp_path / "pipe")) == "other"
    with pytest.raises(AccessError, match="pipe"):
        store.read_bytes(str(tmp_path / "pipe"))


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (errno.EACCES, AccessError, "does not let you read it (permission denied)"),
        (errno.EIO, AccessError, "could not read it (input/output error)"),
        (errno.ELOOP, NotFoundError, "cannot follow this path"),
    ],
)
def test_failures_of_the_system_are_told_in_one_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[StepscopeError], text: str
) -> None:
    path = tmp_path / "locked.bin"
    path.touch()
    refuse(monkeypatch, "open", "locked", code)
    with pytest.raises(kind) as caught:
        store.read_bytes(str(path))
    assert text in caught.value.problem.reason
    assert caught.value.problem.path == str(path)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    assert store.kind(str(tmp_path / name)) is None


# ---- identity --------------------------------------------------------------------------------------------------------


def test_an_identity_tells_two_states_of_a_file_apart(root: str) -> None:
    path = put(f"{root}/a.bin", b"one")
    before = store.identity(path)
    assert before == store.identity(path)
    assert (before.path, before.size, before.is_certain) == (path, 3, True)
    put(path, b"two")
    assert store.identity(path) != before


def test_setting_the_time_back_does_not_hide_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"one")
    os.utime(path, ns=(0, 10**18))
    before = store.identity(str(path))
    path.write_bytes(b"two")
    os.utime(path, ns=(0, 10**18))
    after = store.identity(str(path))
    assert (after.size, after.modified_ns) == (before.size, before.modified_ns)
    assert after != before


def test_the_identity_is_of_the_file_and_not_of_the_link(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"one")
    (tmp_path / "link").symlink_to("a.bin")
    assert store.identity(str(tmp_path / "link")).inode == store.identity(str(tmp_path / "a.bin")).inode


@pytest.mark.parametrize(
    ("info", "checksum", "modified_ns"),
    [
        ({"etag": "abc"}, "etag=abc", None),
        ({"generation": "7", "updated": "2026-11-21T00:00:00Z"}, "generation=7", 1795219200_000000000),
        ({"mtime": 1.5}, None, 1_500_000_000),
        ({"updated": "yesterday"}, None, None),
        ({"modified": datetime.min}, None, None),
        ({"mtime": float("nan")}, None, None),
    ],
)
def test_what_a_store_tells_of_a_version(
    memory: str, monkeypatch: pytest.MonkeyPatch, info: dict[str, Any], checksum: str | None, modified_ns: int | None
) -> None:
    told = {"name": "/bucket/a", "type": "file", "size": 3} | info
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "info", lambda self, path: told)
    identity = store.identity(f"{memory}/a")
    assert (identity.checksum, identity.modified_ns) == (checksum, modified_ns)
    assert identity.is_certain == (checksum is not None or modified_ns is not None)


# ---- walks -----------------------------------------------------------------------------------------------------------


def test_a_walk_lists_folders_by_depth_and_name(root: str) -> None:
    draw(root, "b/x", "a/c/z", "a/c/y", "a/v", "w")
    assert shown(store.walk(root), root) == [".: w", "a: v", "b: x", "a/c: y z"]


def test_hidden_and_package_folders_are_not_entered(root: str) -> None:
    draw(root, ".git/x", "node_modules/x", "a/__pycache__/x", "a/.b")
    assert shown(store.walk(root), root) == [".:", "a: .b"]


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    draw(str(tmp_path), "logs/run/x", "elsewhere/y")
    logs = tmp_path / "logs"
    (logs / "data").symlink_to(tmp_path / "elsewhere")
    (logs / "current").symlink_to("run")
    (logs / "run" / "up").symlink_to("..")
    (logs / "self").symlink_to("self")
    walk = store.walk(str(logs))
    assert shown(walk, str(logs)) == [".: self", "data: y", "run: x"]
    assert walk.problems == ()


def test_a_bound_on_the_entries_is_kept_and_told(root: str) -> None:
    draw(root, *(f"a/{n}" for n in range(30)), *(f"b/{n}" for n in range(30)))
    walk = store.walk(root, max_entries=20)
    assert walk.file_count <= 20
    assert {problem.code for problem in walk.problems} == {"search-bound"}


def test_an_overfull_folder_does_not_hide_the_rest(root: str) -> None:
    draw(root, *(f"ckpt/{n}" for n in range(300)), "plugins/profile/run/x", *(f"{n:04}" for n in range(300)))
    walk = store.walk(root, max_entries=200)
    assert "plugins/profile/run: x" in shown(walk, root)


def test_plugins_beyond_the_bound_of_their_own_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(str(tmp_path), "a", "b", "c", "plugins/profile/run/x")
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: _Sorted(real(path)))
    assert "plugins/profile/run: x" in shown(store.walk(str(tmp_path), max_entries=5), str(tmp_path))


class _Sorted:
    """A listing in the order of the names, as some file systems give it."""

    def __init__(self, names: Any) -> None:
        with names:
            self._names = iter(sorted(names, key=lambda entry: entry.name))

    def __enter__(self) -> Iterator[Any]:
        return self._names

    def __exit__(self, *_: object) -> None:
        pass


def test_a_bound_on_the_depth_is_kept_and_told(root: str) -> None:
    draw(root, "a/b/c/d/x")
    walk = store.walk(root, max_depth=2)
    assert shown(walk, root) == [".:", "a:", "a/b:"]
    (problem,) = walk.problems
    assert (problem.code, problem.path) == ("search-depth", f"{root}/a/b/c")


def test_a_folder_that_may_not_be_listed_is_told_and_the_rest_is_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(str(tmp_path), "a/x", "locked/x", "z/x")
    refuse(monkeypatch, "scandir", "locked")
    walk = store.walk(str(tmp_path))
    assert shown(walk, str(tmp_path)) == [".:", "a: x", "z: x"]
    assert [(problem.code, problem.path) for problem in walk.problems] == [("no-access", f"{tmp_path}/locked")]


def test_a_start_that_may_not_be_listed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "scandir", str(tmp_path))
    with pytest.raises(AccessError, match="permission denied"):
        store.walk(str(tmp_path))


def test_a_remote_listing_is_not_remembered(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw(memory, "a/x")
    forgotten: list[object] = []
    monkeypatch.setattr(
        type(fsspec.filesystem("memory")), "invalidate_cache", lambda self, path=None: forgotten.append(path)
    )
    store.walk(memory)
    assert len(forgotten) == 1


# ---- paths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "plain", "parts", "parent"),
    [
        ("/a/b/", "/a/b", ("a", "b"), "/a"),
        ("/", "/", (), None),
        ("file:///a/b", "/a/b", ("a", "b"), "/a"),
        ("gs://bucket/a/b/", "gs://bucket/a/b", ("bucket", "a", "b"), "gs://bucket/a"),
        ("gs://bucket", "gs://bucket", ("bucket",), None),
        ("zip://a/b::gs://c/d.zip", "zip://a/b::gs://c/d.zip", ("a", "b"), "zip://a::gs://c/d.zip"),
    ],
)
def test_paths_are_taken_apart(path: str, plain: str, parts: tuple[str, ...], parent: str | None) -> None:
    assert store.plain(path) == plain
    assert store.parts(plain) == parts
    assert store.parent(plain) == parent
    if parent:
        assert store.join(parent, parts[-1]) == plain


def test_a_chained_url_is_read(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("run/vm.xplane.pb", b"abc")
    root = f"zip://run::file://{tmp_path}/logs.zip"
    walk = store.walk(root)
    assert [entry.name for folder in walk.folders for entry in folder.files] == ["vm.xplane.pb"]
    assert store.read_bytes(walk.folders[0].files[0].path) == b"abc"


# ---- drivers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "package", "install"),
    [
        ("gs://b/x", "gcsfs", '"stepscope[gcs]"'),
        ("s3://b/x", "s3fs", '"stepscope[s3]"'),
        ("abfs://b/x", "adlfs", '"stepscope[azure]"'),
        ("sftp://h/x", "paramiko", "paramiko"),
    ],
)
def test_a_missing_driver_is_told_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, url: str, package: str, install: str
) -> None:
    def fail(path: str) -> NoReturn:
        raise ImportError(f"Install {package} to access this") from ModuleNotFoundError(name=package)

    monkeypatch.setattr("fsspec.core.url_to_fs", fail)
    with pytest.raises(AccessError) as caught:
        store.read_bytes(url)
    assert caught.value.problem.code == "no-driver"
    assert caught.value.problem.hint == f"pip install {install}"


def test_missing_fsspec_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def fail(name: str, package: str | None = None) -> ModuleType:
        if name.startswith("fsspec"):
            raise ModuleNotFoundError("No module named 'fsspec'", name="fsspec")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(AccessError, match="pip install fsspec"):
        store.read_bytes("memory://a")


def test_an_unknown_scheme_is_told() -> None:
    with pytest.raises(AccessError, match="the scheme nonsense:// is unknown"):
        store.read_bytes("nonsense://a/b")


@pytest.mark.parametrize(
    "error", [RuntimeError("token expired\nlong trace"), PermissionError("token expired"), OSError("token expired")]
)
def test_errors_of_a_driver_do_not_leak(memory: str, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(self: object, *_: object, **__: object) -> NoReturn:
        raise error

    fsspec.filesystem("memory").pipe_file("/bucket/a", b"abc")
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "cat_file", fail)
    with pytest.raises(AccessError) as caught:
        store.read_bytes(f"{memory}/a")
    what = "does not let you read it" if isinstance(error, PermissionError) else "refused or failed"
    assert caught.value.problem.reason == f"the store {what}: token expired"
    assert "credentials" in (caught.value.problem.hint or "")


def test_a_listing_that_makes_no_sense_does_not_leak(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [{"name": "/bucket/a", "type": "file", "size": "unknown"}]
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "ls", lambda self, path, detail: told)
    with pytest.raises(AccessError, match="the store refused or failed"):
        store.walk(memory)


def test_local_paths_import_no_fsspec(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    code = (
        "import sys; from stepscope.formats import store; root = sys.argv[1];"
        "store.walk(root); store.identity(root + '/a'); store.read_bytes(root + '/a');"
        "print(sorted({'fsspec', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_file_too_large_for_the_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr(builtins, "open", fail)
    with pytest.raises(AccessError, match="not enough memory"):
        store.read_bytes(str(tmp_path / "a"))
