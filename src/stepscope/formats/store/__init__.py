"""Reads files and lists folders, on this machine and in remote stores, through one small interface.

A path without a scheme (or with `file://`) is read with `os` alone, which is fast and imports nothing.  Any other path
(`gs://`, `s3://`, `memory://`, ...) goes through fsspec, which is imported at the first such path.  This package knows
nothing about profiles.

Every failure is an `AccessError` or a `NotFoundError` that names the path.  No `OSError` and no error of a store's
driver leaves this package.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stepscope.formats.store.base import MAX_ENTRIES, Entry, Identity, Kind, Store
from stepscope.formats.store.local import LOCAL, reading
from stepscope.formats.store.paths import absolute, basename, is_remote, join, parent, parts, plain
from stepscope.formats.store.remote import REMOTE, remove, upload, write_bytes
from stepscope.formats.store.walking import Folder, Walk, Walker, is_within

if TYPE_CHECKING:
    from stepscope import kernels

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
    "is_within",
    "join",
    "kind",
    "open_source",
    "parent",
    "parts",
    "plain",
    "read_buffer",
    "read_bytes",
    "read_pieces",
    "read_prefix",
    "reading",
    "remove",
    "upload",
    "walk",
    "write_bytes",
]

MAX_DEPTH = 8
"""Levels below the first folder: a parent of logdirs, a TensorBoard run, plugins/profile/RUN, and a few spare ones."""


def kind(path: str) -> Kind | None:
    """What is at a path, following links; None if nothing.  Raises AccessError if the system does not allow to look."""
    return _store(path).kind(path)


def identity(path: str) -> Identity:
    """The file's identity, for use as a cache key.  Raises NotFoundError, AccessError."""
    return _store(path).identity(path)


def read_bytes(path: str) -> bytes:
    """The whole file.

    It reads at most as many bytes as the file had when opened, so that reading a growing file ends.  If the file
    shrinks meanwhile, it returns what is left.

    Raises:
        NotFoundError, AccessError: the latter also for pipes and devices, which have no size.
    """
    return _store(path).read(path, None)


def read_buffer(path: str) -> memoryview:
    """Like `read_bytes`, but into a buffer that is faster to allocate for a large file."""
    return _store(path).buffer(path)


def open_source(path: str) -> kernels.wire.Source:
    """Like `read_bytes`, but of a file on this machine its reader reads what it needs, in a context of `reading`."""
    return _store(path).source(path)


def read_pieces(path: str) -> Iterator[bytes]:
    """Like `read_bytes`, but in pieces of bounded size; from a remote store, in one piece."""
    return _store(path).pieces(path)


def read_prefix(path: str, size: int) -> bytes:
    """At most the first `size` bytes of a file.  Raises as `read_bytes` does."""
    return _store(path).read(path, size)


def walk(
    path: str,
    max_depth: int = MAX_DEPTH,
    max_entries: int = MAX_ENTRIES,
    max_folders: int | None = None,
    within: Sequence[str] | None = None,
) -> Walk:
    """Lists a folder and everything below it, within limits, always in the same order.

    Each folder is listed once, however many links lead to it, so loops of links end.  It is listed under its real name
    if that is within the walk.  `FIRST_FOLDER`s come first and targets of links last, so that a limit cuts off what
    matters least.  For the same reason no folder may use more than half of the remaining entries.  Hidden folders and
    `SKIPPED_FOLDERS` are not entered.  Folders that could not be listed are in `problems`.  With `within`, links that
    lead out of these folders are left out, and are problems.

    Raises:
        NotFoundError, AccessError: if the first folder itself cannot be listed.
    """
    store = _store(path)
    store.forget(path)
    folders = store.max_folders if max_folders is None else min(max_folders, store.max_folders)
    real = None if within is None else tuple(map(os.path.realpath, within))
    return Walker(store, max_depth, max_entries, folders, real).run(path)


def _store(path: str) -> Store:
    return REMOTE if is_remote(path) else LOCAL
