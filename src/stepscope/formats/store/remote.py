"""Files of remote stores, read through the drivers of fsspec, which is imported at the first such path.

A large file is fetched in ranges, several at a time: one connection to an object store gives a part of its speed.  What
fails for a passing reason is tried again.  Credentials are those that the drivers find in the user's environment.
"""

from __future__ import annotations

import importlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stepscope import kernels
from stepscope.errors import AccessError, NotFoundError, StepscopeError
from stepscope.formats.store.base import Entry, Identity, Kind, Store, too_large
from stepscope.formats.store.paths import join

MAX_REMOTE_FOLDERS = 500
"""The most folders listed in one walk of a remote store, where each costs a request."""


if TYPE_CHECKING:
    from concurrent.futures import Future

RANGE_BYTES = 8 << 20
"""A file of more than two ranges is fetched range by range."""

MOST_RANGE_BYTES = 32 << 20
"""Ranges grow with the file up to this: a request costs the store time, and some stores read the whole file for it."""

_RANGES_OF_FILE = 8  # before they reach that size

RANGES_AT_ONCE = 4

WAITS_SECONDS = (0.2, 1.0, 4.0)
"""Before each further try of what failed for a passing reason."""

_EXTRAS = {"gcsfs": '"stepscope[gcs]"', "s3fs": '"stepscope[s3]"', "adlfs": '"stepscope[azure]"'}
"""What to install for a driver's package that an extra brings."""

_PASSING = (ConnectionError, TimeoutError)
_LASTING = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
_REFUSALS = (401, 403)  # the HTTP status of what these credentials may not do
_SERVER_FAILED = 500  # the first HTTP status by which a server says that it failed itself

T = TypeVar("T")


class _RemoteStore:
    max_folders = MAX_REMOTE_FOLDERS

    def kind(self, path: str) -> Kind | None:
        try:
            with _remote_errors(path):
                system, inner = _open_store(path)
                info = _try_again(lambda: system.info(inner))
                return "folder" if info["type"] == "directory" else "file"
        except NotFoundError:
            return None

    def identity(self, path: str) -> Identity:
        with _remote_errors(path):
            system, inner = _open_store(path)
            return _remote_identity(path, _try_again(lambda: system.info(inner)))

    def read(self, path: str, limit: int | None) -> bytes:
        with _remote_errors(path):
            system, inner = _open_store(path)
            if limit is None:
                return b"".join(_Ranges(system, inner).fetch())
            return _fetch_range(system, inner, 0, limit)[:limit]

    def buffer(self, path: str) -> memoryview:
        with _remote_errors(path):
            ranges = _Ranges(*_open_store(path))
            if not ranges.is_large:
                return memoryview(b"".join(ranges.fetch()))
            memory = memoryview(kernels.memory.Memory(ranges.size))
            done = 0
            for piece in ranges.fetch():
                memory[done : done + len(piece)] = piece
                done += len(piece)
            return memory[:done]

    def source(self, path: str) -> kernels.wire.Source:
        return kernels.wire.Source(self.buffer(path))

    def pieces(self, path: str) -> Iterator[bytes]:
        with _remote_errors(path):
            yield from _Ranges(*_open_store(path)).fetch()

    def entries(self, path: str, limit: int) -> tuple[list[Entry], bool]:
        with _remote_errors(path):
            system, inner = _open_store(path)
            own_name = inner.strip("/")
            # Some stores list an empty object that stands for the folder itself.
            infos = _try_again(lambda: system.ls(inner, detail=True))
            found = [info for info in infos if info["name"].strip("/") != own_name]
            found.sort(key=lambda info: str(info["name"]))
            return [_remote_entry(path, info) for info in found[:limit]], len(found) > limit

    def folder_id(self, path: str) -> object:
        return path

    def forget(self, path: str) -> None:
        with _remote_errors(path):
            _open_store(path)[0].invalidate_cache()


class _Ranges:
    """The ranges of one file, in order, some of them fetched ahead.

    Attributes:
        size: of the file in bytes; 0 if the store does not say.
    """

    def __init__(self, system: Any, inner: str) -> None:
        self._system, self._inner = system, inner
        self.size = int(_try_again(lambda: system.info(inner)).get("size") or 0)
        self._step = max(RANGE_BYTES, min(self.size // _RANGES_OF_FILE, MOST_RANGE_BYTES))

    @property
    def is_large(self) -> bool:
        """Whether the file comes in several pieces."""
        return self.size > 2 * RANGE_BYTES

    def fetch(self) -> Iterator[bytes]:
        """The file in pieces."""
        if not self.is_large:
            yield _fetch_range(self._system, self._inner, None, None)
            return
        from concurrent.futures import ThreadPoolExecutor

        starts = deque(range(0, self.size, self._step))
        coming: deque[Future[bytes]] = deque()
        with ThreadPoolExecutor(RANGES_AT_ONCE) as threads:
            try:
                while starts or coming:
                    while starts and len(coming) < RANGES_AT_ONCE:
                        coming.append(threads.submit(self._fetch_from, starts.popleft()))
                    yield coming.popleft().result()
            finally:
                for future in coming:
                    future.cancel()

    def _fetch_from(self, start: int) -> bytes:
        end = min(start + self._step, self.size)
        content = _fetch_range(self._system, self._inner, start, end)
        # Some web servers answer with the whole file, whatever part was asked for.
        return content if len(content) <= end - start else content[start:end]


def _fetch_range(system: Any, inner: str, start: int | None, end: int | None) -> bytes:
    return bytes(_try_again(lambda: system.cat_file(inner, start=start, end=end)))


def _try_again(action: Callable[[], T]) -> T:
    """The result of an action that is tried again when it fails for a reason that may pass."""
    for wait in WAITS_SECONDS:
        try:
            return action()
        except Exception as error:
            if not _may_pass(error):
                raise
        time.sleep(wait)
    return action()


def _may_pass(error: Exception) -> bool:
    """Whether an error may be gone the next time: the connection broke, or the store was busy."""
    if isinstance(error, _LASTING):
        return False
    status = getattr(error, "status", None) or getattr(error, "code", None)
    return isinstance(error, _PASSING) or (isinstance(status, int) and status >= _SERVER_FAILED)


def upload(source: Path, path: str) -> None:
    """Copies a local file to a remote store and creates the folders above it.

    Raises:
        AccessError: the file already exists, or the store refuses.
    """
    with _remote_errors(path):
        system, inner = _open_store(path)
        if system.exists(inner):
            raise AccessError("a file with this name already exists", path=path, hint="copy it under another name")
        system.makedirs(system._parent(inner), exist_ok=True)
        system.put_file(str(source), inner)


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file to a remote store, in place of one that may be there.  Raises AccessError."""
    with _remote_errors(path):
        system, inner = _open_store(path)
        try:
            system.pipe_file(inner, content)
        except FileNotFoundError:  # a store with real folders
            system.makedirs(system._parent(inner), exist_ok=True)
            system.pipe_file(inner, content)


def remove(path: str) -> None:
    """Removes a file of a remote store, or a folder with all that is in it.  Raises AccessError, NotFoundError."""
    with _remote_errors(path):
        system, inner = _open_store(path)
        system.rm(inner, recursive=True)


def _open_store(path: str) -> tuple[Any, str]:
    """The driver for a URL, and the path within its store."""
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
        modified_ns=_parse_time_ns(times[0]) if times else None,
        changed_ns=None,
        checksum=";".join(marks) or None,
        inode=0,
    )


def _parse_time_ns(moment: object) -> int | None:
    """Nanoseconds since the epoch from any type that drivers use for a time; None if unknown."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            return None
    try:
        if isinstance(moment, datetime):
            return int(moment.timestamp() * 1e6) * 1000
        return int(moment * 1e9) if isinstance(moment, int | float) else None
    except (ValueError, OverflowError):  # some drivers return NaN or year 1 for an unknown time
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
        raise (_no_driver(path, error) if isinstance(error, ImportError) else too_large(path)) from error
    except Exception as error:
        # Each driver has its own exceptions, without a common root.
        raise _store_error(path, error) from error


def _store_error(path: str, error: Exception) -> AccessError:
    scheme = path.partition("://")[0]
    if isinstance(error, ValueError) and "rotocol" in str(error):
        hint = "paths that can be read: local ones, and those of fsspec such as gs://, s3://, abfs://, https://"
        return AccessError(f"the scheme {scheme}:// is unknown", path=path, hint=hint)
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if _is_refusal(error):
        hint = "check that your credentials for this store are valid and may read this place"
        return AccessError(f"the store does not let you read it: {lines[0][:300]}", path=path, hint=hint)
    hint = "check the address, the network and your credentials for this store"
    return AccessError(f"the store refused or failed: {lines[0][:300]}", path=path, hint=hint)


def _is_refusal(error: Exception) -> bool:
    """Whether the credentials are not good enough; gcsfs says so with a plain OSError, or the status of the answer."""
    status = getattr(error, "status", None) or getattr(error, "code", None)
    return isinstance(error, PermissionError) or status in _REFUSALS or str(error).startswith("Forbidden:")


def _no_driver(path: str, error: ImportError) -> AccessError:
    scheme = path.partition("://")[0]
    package = _driver_package(scheme, error)
    reason = f"reading {scheme}:// needs the package {package}, which is not installed"
    return AccessError(reason, code="no-driver", path=path, hint=f"pip install {_EXTRAS.get(package, package)}")


def _driver_package(scheme: str, error: ImportError) -> str:
    """The package to install.  A driver that is not part of fsspec comes in a package with the name of its module."""
    try:
        known: dict[str, dict[str, str]] = importlib.import_module("fsspec.registry").known_implementations
    except ImportError:
        return "fsspec"
    module = known.get(scheme, {}).get("class", "").partition(".")[0]
    missing = error.name or getattr(error.__cause__, "name", None)
    return module if module and module != "fsspec" else (missing or "fsspec").partition(".")[0]


REMOTE: Store = _RemoteStore()
"""All stores that fsspec supports."""
