"""Reading files and listing folders, on this machine and in remote stores, through one small interface.

A path without a scheme (and `file://`) is read with `os` alone: fast, and nothing is imported.  Anything else
(`gs://`, `s3://`, `memory://`, ...) goes through fsspec, imported when the first such path is met.  Nothing here knows
what a profile is.

Every failure is an `AccessError` or a `NotFoundError` that names the path; no `OSError` and no error of a store's
driver passes this module.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.formats.store.base import MAX_ENTRIES, Entry, Identity, Kind, Store
from stepscope.formats.store.local import LOCAL
from stepscope.formats.store.paths import absolute, basename, is_remote, join, parent, parts, plain
from stepscope.formats.store.remote import REMOTE, upload
from stepscope.formats.store.walking import Folder, Walk, Walker

__all__ = [
    "MAX_DEPTH",
    "MAX_ENTRIES",
    "Entry",
    "Folder",
    "Identity",
    "Kind",
    "Walk",
    "absolute",
    "basename",
    "identity",
    "is_remote",
    "join",
    "kind",
    "parent",
    "parts",
    "plain",
    "read_buffer",
    "read_bytes",
    "read_pieces",
    "read_prefix",
    "upload",
    "walk",
]

MAX_DEPTH = 8
"""Levels below the starting folder: a parent of logdirs, a TensorBoard run, plugins/profile/RUN, and some to spare."""


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
    return Walker(store, max_depth, max_entries, folders).run(path)


def _store(path: str) -> Store:
    return REMOTE if is_remote(path) else LOCAL
