"""Files of remote stores, read through the drivers of fsspec, which is imported at the first such path."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from stepscope.errors import AccessError, NotFoundError, StepscopeError
from stepscope.formats.store.base import Entry, Identity, Kind, Store, too_large
from stepscope.formats.store.paths import join

MAX_REMOTE_FOLDERS = 500
"""The most folders listed in one walk of a remote store, where each costs a request."""


class _RemoteStore:
    max_folders = MAX_REMOTE_FOLDERS

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
            # Some stores list an empty object that stands for the folder itself.
            found = [info for info in system.ls(inner, detail=True) if info["name"].strip("/") != own_name]
            found.sort(key=lambda info: str(info["name"]))
            return [_remote_entry(path, info) for info in found[:limit]], len(found) > limit

    def folder_id(self, path: str) -> object:
        return path

    def forget(self, path: str) -> None:
        with _remote_errors(path):
            _open_store(path)[0].invalidate_cache()


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
    hint = "check the address, the network and your credentials for this store"
    return AccessError(f"the store refused or failed: {lines[0][:300]}", path=path, hint=hint)


def _no_driver(path: str, error: ImportError) -> AccessError:
    scheme = path.partition("://")[0]
    package = _driver_package(scheme, error)
    reason = f"reading {scheme}:// needs the package {package}, which is not installed"
    return AccessError(reason, code="no-driver", path=path, hint=f"pip install {package}")


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
