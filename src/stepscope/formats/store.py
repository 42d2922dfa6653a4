"""Reading files and listing folders, on this machine and in remote stores, through one small interface.

A path without a scheme (and `file://`) is read with `os` alone: fast, and nothing is imported.  Anything else
(`gs://`, `s3://`, `memory://`, ...) goes through fsspec, imported when the first such path is met.  Nothing here knows
what a profile is.

Every failure is an `AccessError` or a `NotFoundError` that names the path; no `OSError` and no error of a store's
driver passes this module.
"""

# A path here may be a URL, which pathlib would spoil: it makes one slash of two.
# ruff: noqa: PTH100, PTH111, PTH116, PTH118, PTH120, PTH206

from __future__ import annotations

import errno
import heapq
import importlib
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

from stepscope.errors import AccessError, InputError, NotFoundError, Problem, StepscopeError

MAX_DEPTH = 8
"""Levels below the starting folder: a parent of logdirs, a TensorBoard run, plugins/profile/RUN, and some to spare."""

MAX_ENTRIES = 100_000
"""Names read in one walk: a quarter of a second on a local disk."""

MAX_REMOTE_FOLDERS = 500
"""Folders listed in one walk of a remote store, where each costs a request."""

SKIPPED_FOLDERS = frozenset({"node_modules", "site-packages", "__pycache__", "lost+found"})
"""Folders that are never entered, besides hidden ones: full of files, and none of them a profile."""

_PIECE_BYTES = 8 << 20

FIRST_FOLDER = "plugins"
"""The folder that a walk enters before all others: TensorBoard's plugins keep their data below it."""

Kind = Literal["file", "folder", "other"]


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one state of a file from another, without reading it.

    Attributes:
        path: absolute path, or URL.
        size: bytes; None if the store does not say.
        modified_ns: time of the last change of the content, ns since the epoch; None if unknown.
        changed_ns: the same for content or attributes, which no tool can set back; None in remote stores.
        checksum: the store's own version mark or checksum; None on local disks.
        inode: number of the file on its disk; 0 in remote stores.
    """

    path: str
    size: int | None
    modified_ns: int | None
    changed_ns: int | None
    checksum: str | None
    inode: int

    @property
    def is_certain(self) -> bool:
        """True if a changed file is sure to have another identity.  Nothing may be cached under one that is not."""
        return self.checksum is not None or self.modified_ns is not None


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder.

    Attributes:
        name: base name.
        path: path or URL, beginning with the folder's as it was given.
        is_folder: True for a folder, also one reached through a symbolic link.
        is_link: True for a symbolic link.
        identity: where the listing told it (remote stores); otherwise None, to be had from `identity(path)`.
    """

    name: str
    path: str
    is_folder: bool
    is_link: bool = False
    identity: Identity | None = None


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that a walk has listed; `files` in the order of their names, `depth` counted from the start's 0."""

    path: str
    depth: int
    files: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """What a bounded walk found.

    Attributes:
        folders: in the order of depth, then path.
        problems: folders that could not be listed (`no-access`) and bounds that were hit (`search-bound` for the
            count of names or folders, `search-depth` for the depth).
    """

    folders: tuple[Folder, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def file_count(self) -> int:
        """How many files were listed."""
        return sum(len(folder.files) for folder in self.folders)


class Store(Protocol):
    """A place that holds files.  Paths are absolute or relative paths, or whole URLs."""

    max_folders: int

    def absolute(self, path: str) -> str:
        """See `absolute` of this module, as for the others that have its names."""

    def kind(self, path: str) -> Kind | None:
        """What is at a path."""

    def identity(self, path: str) -> Identity:
        """The identity of a file."""

    def read(self, path: str, limit: int | None) -> bytes:
        """The first `limit` bytes of a file, or all."""

    def buffer(self, path: str) -> memoryview:
        """All of a file."""

    def pieces(self, path: str) -> Iterator[bytes]:
        """All of a file, piece by piece."""

    def entries(self, path: str, limit: int) -> tuple[list[Entry], bool]:
        """At most `limit` names of a folder, and True if there are more."""

    def folder_id(self, path: str) -> object:
        """The same for two paths of one folder."""

    def forget(self, path: str) -> None:
        """Drops listings that are remembered, so that a session written meanwhile is seen."""


# ---- the interface ---------------------------------------------------------------------------------------------------


def is_remote(path: str) -> bool:
    """True if the path is a URL of a remote store.  `file://` is local."""
    return "://" in path and not path.startswith("file://")


def plain(path: str | os.PathLike[str]) -> str:
    """The path as a string: `~` expanded, `file://` removed, no slash at the end."""
    text = os.fspath(path)
    if is_remote(text):
        scheme, _, rest = text.partition("://")
        return f"{scheme}://{rest.rstrip('/')}"
    text = os.path.expanduser(text.removeprefix("file://"))
    return text.rstrip("/") or ("/" if text.startswith("/") else os.curdir)


def absolute(path: str) -> str:
    """The absolute path; a URL is absolute as it is."""
    return _store(path).absolute(path)


def join(folder: str, name: str) -> str:
    """The path of a name in a folder."""
    if not is_remote(folder):
        return os.path.join(folder, name)
    # "zip://inner::s3://bucket/file.zip": what stands before the first "::" is the path, the rest says where it is.
    head, chain, tail = folder.partition("::")
    return f"{head.rstrip('/')}/{name}{chain}{tail}"


def parts(path: str) -> tuple[str, ...]:
    """The components of the absolute path, without root, scheme or drive."""
    if not is_remote(path):
        return tuple(part for part in os.path.splitdrive(absolute(path))[1].split(os.sep) if part)
    return tuple(part for part in path.partition("::")[0].partition("://")[2].split("/") if part)


def basename(path: str) -> str:
    """The last component of the absolute path; empty for a root."""
    return parts(path)[-1] if parts(path) else ""


def parent(path: str) -> str | None:
    """The folder above, or None at a root or a bucket."""
    if not is_remote(path):
        above = os.path.dirname(absolute(path))
        return None if above == absolute(path) else above
    head, chain, tail = path.partition("::")
    above, slash, _ = head.rstrip("/").rpartition("/")
    return None if not slash or above.endswith("/") else f"{above}{chain}{tail}"


def kind(path: str) -> Kind | None:
    """What is at a path, links followed; None if nothing.  Raises AccessError if the system will not say."""
    return _store(path).kind(path)


def identity(path: str) -> Identity:
    """The file's identity, to be used as a cache key.  Raises NotFoundError, AccessError."""
    return _store(path).identity(path)


def read_bytes(path: str) -> bytes:
    """The whole file.

    No more is read than the file held when it was opened, so that a file that grows ends; one that shrinks meanwhile
    gives what there is.  Raises NotFoundError, AccessError (also for pipes and devices, which have no size).
    """
    return _store(path).read(path, None)


def read_buffer(path: str) -> memoryview:
    """As `read_bytes`, in memory of its own, which for a large file is quicker to come by."""
    return _store(path).buffer(path)


def read_pieces(path: str) -> Iterator[bytes]:
    """The whole file in pieces of a bounded size, from a remote store in one; otherwise as `read_bytes`."""
    return _store(path).pieces(path)


def read_prefix(path: str, size: int) -> bytes:
    """At most the first `size` bytes of a file.  Raises as `read_bytes` does."""
    return _store(path).read(path, size)


def upload(source: Path, path: str) -> None:
    """Copies a local file to a remote store, folders and all.

    Raises:
        AccessError: there is such a file already, or the store refuses.
    """
    with _remote_errors(path):
        system, inner = _open_store(path)
        if system.exists(inner):
            raise AccessError("there is a file of this name already", path=path, hint="copy it under another name")
        system.makedirs(system._parent(inner), exist_ok=True)
        system.put_file(str(source), inner)


def walk(path: str, max_depth: int = MAX_DEPTH, max_entries: int = MAX_ENTRIES, max_folders: int | None = None) -> Walk:
    """Lists a folder and what is below it, within bounds, always in the same order.

    Each folder is listed once, however many links lead to it, under its real name if that lies in the walk too; so
    loops of links end.  `FIRST_FOLDER`s come first and what links lead to last, so that a bound cuts off what
    matters least; for the same reason no folder may use more than half of the entries that are left.  Hidden folders
    and `SKIPPED_FOLDERS` are not entered.  What could not be listed is told in `problems`.

    Raises:
        NotFoundError, AccessError: if the first folder itself cannot be listed.
    """
    store = _store(path)
    store.forget(path)
    folders = store.max_folders if max_folders is None else min(max_folders, store.max_folders)
    return _Walker(store, max_depth, max_entries, folders).run(path)


# ---- the walk --------------------------------------------------------------------------------------------------------

_FIRST, _ORDINARY, _LINKED = range(3)


@dataclass
class _Walker:
    """The state of one walk.  `queue` holds (rank, depth, path) and is taken in that order."""

    store: Store
    max_depth: int
    entries_left: int
    folders_left: int
    queue: list[tuple[int, int, str]] = field(default_factory=list)
    seen: set[object] = field(default_factory=set)
    folders: list[Folder] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    too_deep: str | None = None

    def run(self, start: str) -> Walk:
        self._visit(_ORDINARY, 0, start)
        while self.queue and self.entries_left > 0 and self.folders_left > 0:
            rank, depth, path = heapq.heappop(self.queue)
            try:
                self._visit(rank, depth, path)
            except InputError as error:
                self.problems.append(error.problem)
        self._tell_bounds(start)
        ordered = sorted(self.folders, key=lambda folder: (folder.depth, folder.path))
        return Walk(tuple(ordered), tuple(self.problems))

    def _visit(self, rank: int, depth: int, path: str) -> None:
        identifier = self.store.folder_id(path)
        if identifier in self.seen:
            return
        self.seen.add(identifier)
        entries, is_cut = self.store.entries(path, max(1, self.entries_left // 2))
        self.entries_left -= len(entries)
        self.folders_left -= 1
        if is_cut:
            self._tell(path, f"only {len(entries):,} of the names in this folder were looked at")
            self._add_cut_off(path, entries)
        entries.sort(key=lambda entry: entry.name)
        self.folders.append(Folder(path, depth, tuple(entry for entry in entries if not entry.is_folder)))
        for entry in entries:
            if entry.is_folder and not _is_skipped(entry.name):
                self._enqueue(rank, depth + 1, entry)

    def _add_cut_off(self, path: str, entries: list[Entry]) -> None:
        """Keeps the one folder that matters most from being lost among the names that were not read."""
        first = join(path, FIRST_FOLDER)
        if all(entry.name != FIRST_FOLDER for entry in entries) and self.store.kind(first) == "folder":
            entries.append(Entry(FIRST_FOLDER, first, is_folder=True))

    def _enqueue(self, rank: int, depth: int, entry: Entry) -> None:
        if depth > self.max_depth:
            self.too_deep = self.too_deep or entry.path
            return
        if entry.is_link or rank == _LINKED:
            rank = _LINKED
        elif entry.name == FIRST_FOLDER:
            rank = _FIRST
        heapq.heappush(self.queue, (rank, depth, entry.path))

    def _tell_bounds(self, start: str) -> None:
        if self.queue:
            self._tell(start, f"the search ended with {len(self.queue):,} folders not looked into")
        if self.too_deep:
            reason = f"folders deeper than {self.max_depth} levels, such as this, were not looked into"
            self._tell(self.too_deep, reason, code="search-depth")

    def _tell(self, path: str, reason: str, code: str = "search-bound") -> None:
        hint = "give a path nearer to the profiles"
        self.problems.append(Problem(code=code, reason=reason, path=path, hint=hint))


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name in SKIPPED_FOLDERS


# ---- this machine ----------------------------------------------------------------------------------------------------


class _LocalStore:
    max_folders = MAX_ENTRIES

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def kind(self, path: str) -> Kind | None:
        try:
            with _local_errors(path):
                return _kind_of_mode(os.stat(path).st_mode)
        except NotFoundError:
            return None

    def identity(self, path: str) -> Identity:
        with _local_errors(path):
            status = os.stat(path)
        return Identity(
            path=os.path.abspath(path),
            size=status.st_size,
            modified_ns=status.st_mtime_ns,
            changed_ns=status.st_ctime_ns,
            checksum=None,
            inode=status.st_ino,
        )

    def read(self, path: str, limit: int | None) -> bytes:
        with _local_errors(path), open(path, "rb", opener=_open_at_once) as file:
            size = _file_size(path, file)
            return file.read(size if limit is None else min(limit, size))

    def buffer(self, path: str) -> memoryview:
        with _local_errors(path), open(path, "rb", buffering=0, opener=_open_at_once) as file:
            memory = _large_pages(_file_size(path, file))
            done = 0
            while count := file.readinto(memory[done:]):
                done += count
            return memory[:done]

    def pieces(self, path: str) -> Iterator[bytes]:
        with _local_errors(path), open(path, "rb", opener=_open_at_once) as file:
            left = _file_size(path, file)
            while piece := file.read(min(left, _PIECE_BYTES)):
                left -= len(piece)
                yield piece

    def entries(self, path: str, limit: int) -> tuple[list[Entry], bool]:
        with _local_errors(path), os.scandir(path) as names:
            found = [_local_entry(path, entry) for entry in islice(names, limit)]
            return found, next(names, None) is not None

    def folder_id(self, path: str) -> object:
        with _local_errors(path):
            status = os.stat(path)
        return status.st_dev, status.st_ino

    def forget(self, path: str) -> None:
        pass


def _large_pages(size: int) -> memoryview:
    """Memory in pages of 2 MB where the system has them: half of the time of reading went into pages of 4 KB."""
    if not size or not hasattr(mmap, "MADV_HUGEPAGE"):
        return memoryview(bytearray(size))
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)
    except OSError as error:
        raise MemoryError(f"no room for {size:,} bytes") from error
    with suppress(OSError):  # a system that was built without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def _file_size(path: str, file: BinaryIO) -> int:
    """Raises AccessError for what has no size."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        hint = "write the profile to a file first and give that"
        raise AccessError("this is a pipe, a socket or a device, not a file", path=path, hint=hint)
    return status.st_size


def _open_at_once(path: str, flags: int) -> int:
    """Opens without waiting, as opening a pipe that nobody writes to would."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _local_entry(folder: str, entry: os.DirEntry[str]) -> Entry:
    try:
        is_folder, is_link = entry.is_dir(), entry.is_symlink()
    except OSError:
        # A link that leads nowhere or in a circle: told when somebody reads it.
        is_folder, is_link = False, True
    return Entry(entry.name, os.path.join(folder, entry.name), is_folder, is_link)


def _kind_of_mode(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


@contextmanager
def _local_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _local_error(path, error) from error
    except ValueError as error:
        # A NUL in the path.
        raise NotFoundError(f"no file can have this name ({error})", path=repr(path)) from error
    except MemoryError as error:
        raise _too_large(path) from error


def _local_error(path: str, error: OSError) -> InputError:
    why = (error.strerror or str(error) or type(error).__name__).lower()
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFoundError("there is no such file or folder", path=path)
    if error.errno == errno.EISDIR:
        return AccessError("this is a folder, not a file", path=path)
    if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
        return NotFoundError(f"the system cannot follow this path ({why})", path=path)
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = "ask its owner for the right to read it, or copy it to where you may"
        return AccessError(f"the system does not let you read it ({why})", path=path, hint=hint)
    return AccessError(f"the system could not read it ({why})", path=path, hint="check the disk or the mount it is on")


def _too_large(path: str) -> AccessError:
    return AccessError("there is not enough memory to hold this file", path=path, hint="use a machine with more memory")


# ---- remote stores ---------------------------------------------------------------------------------------------------


class _RemoteStore:
    max_folders = MAX_REMOTE_FOLDERS

    def absolute(self, path: str) -> str:
        return path

    def kind(self, path: str) -> Kind | None:
        try:
            with _remote_errors(path):
                system, inner = _open_store(path)
                return "folder" if system.info(inner)["type"] == "directory" else "file"
        except NotFoundError:
            return None

    def identity(self, path: str) -> Identity:
        with _remote_errors(path):
            system, inner = _open_store(path)
            return _remote_identity(path, system.info(inner))

    def read(self, path: str, limit: int | None) -> bytes:
        with _remote_errors(path):
            system, inner = _open_store(path)
            if limit is None:
                return bytes(system.cat_file(inner))
            return bytes(system.cat_file(inner, start=0, end=limit))[:limit]

    def buffer(self, path: str) -> memoryview:
        return memoryview(self.read(path, None))

    def pieces(self, path: str) -> Iterator[bytes]:
        yield self.read(path, None)

    def entries(self, path: str, limit: int) -> tuple[list[Entry], bool]:
        with _remote_errors(path):
            system, inner = _open_store(path)
            own_name = inner.strip("/")
            # Some stores list an empty object that marks the folder itself.
            found = [info for info in system.ls(inner, detail=True) if info["name"].strip("/") != own_name]
            found.sort(key=lambda info: str(info["name"]))
            return [_remote_entry(path, info) for info in found[:limit]], len(found) > limit

    def folder_id(self, path: str) -> object:
        return path

    def forget(self, path: str) -> None:
        with _remote_errors(path):
            _open_store(path)[0].invalidate_cache()


def _open_store(path: str) -> tuple[Any, str]:
    """The driver for a URL and the path in it."""
    system, inner = importlib.import_module("fsspec.core").url_to_fs(path)
    return system, str(inner)


def _remote_entry(folder: str, info: dict[str, Any]) -> Entry:
    name = str(info["name"]).rstrip("/").rpartition("/")[2]
    path = join(folder, name)
    is_folder = info["type"] == "directory"
    return Entry(name, path, is_folder, identity=None if is_folder else _remote_identity(path, info))


_CHECKSUM_KEYS = ("generation", "VersionId", "etag", "ETag", "content_md5", "md5Hash", "crc32c", "checksum")
_MODIFIED_KEYS = ("mtime", "updated", "LastModified", "last_modified", "modified", "created")


def _remote_identity(path: str, info: dict[str, Any]) -> Identity:
    marks = [f"{key}={info[key]}" for key in _CHECKSUM_KEYS if info.get(key)]
    times = [info[key] for key in _MODIFIED_KEYS if info.get(key)]
    size = info.get("size")
    return Identity(
        path=path,
        size=None if size is None else int(size),
        modified_ns=_as_ns(times[0]) if times else None,
        changed_ns=None,
        checksum=";".join(marks) or None,
        inode=0,
    )


def _as_ns(moment: object) -> int | None:
    """Nanoseconds since the epoch from whatever a driver uses for a time; None if it cannot be told."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            return None
    try:
        if isinstance(moment, datetime):
            return int(moment.timestamp() * 1e6) * 1000
        return int(moment * 1e9) if isinstance(moment, int | float) else None
    except (ValueError, OverflowError):  # NaN, or year 1: what some drivers say for a time that they do not know
        return None


@contextmanager
def _remote_errors(path: str) -> Iterator[None]:
    try:
        yield
    except StepscopeError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError("there is no such file or folder in the store", path=path) from error
    except (ImportError, MemoryError) as error:
        raise (_no_driver(path, error) if isinstance(error, ImportError) else _too_large(path)) from error
    except Exception as error:
        # Each driver has its own exceptions, without a common root.
        raise _store_error(path, error) from error


def _store_error(path: str, error: Exception) -> AccessError:
    scheme = path.partition("://")[0]
    if isinstance(error, ValueError) and "rotocol" in str(error):
        hint = "paths that can be read: local ones, and those of fsspec such as gs://, s3://, abfs://, https://"
        return AccessError(f"no store is known by the scheme {scheme}://", path=path, hint=hint)
    lines = str(error).strip().splitlines() or [type(error).__name__]
    hint = "check the address, the network and your credentials for this store"
    return AccessError(f"the store refused or failed: {lines[0][:300]}", path=path, hint=hint)


def _no_driver(path: str, error: ImportError) -> AccessError:
    scheme = path.partition("://")[0]
    package = _driver_package(scheme, error)
    reason = f"reading {scheme}:// needs the package {package}, which is not installed"
    return AccessError(reason, code="no-driver", path=path, hint=f"pip install {package}")


def _driver_package(scheme: str, error: ImportError) -> str:
    """The package to install.  fsspec's drivers in packages of their own are named as their module is."""
    try:
        known: dict[str, dict[str, str]] = importlib.import_module("fsspec.registry").known_implementations
    except ImportError:
        return "fsspec"
    module = known.get(scheme, {}).get("class", "").partition(".")[0]
    missing = error.name or getattr(error.__cause__, "name", None)
    return module if module and module != "fsspec" else (missing or "fsspec").partition(".")[0]


# ---- choosing --------------------------------------------------------------------------------------------------------


@cache
def _stores() -> tuple[Store, Store]:
    return _LocalStore(), _RemoteStore()


def _store(path: str) -> Store:
    return _stores()[is_remote(path)]
