"""Files of this machine, read with `os` alone."""

# A path here may be a URL, which pathlib would break: it replaces two slashes by one.
# ruff: noqa: PTH100, PTH116, PTH118

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO

from stepscope import kernels
from stepscope.errors import AccessError, InputError, NotFoundError
from stepscope.formats.store.base import MAX_ENTRIES, Entry, Identity, Kind, Store, too_large

_PIECE_BYTES = 8 << 20
_WORTH_A_LOOK = 64 << 20  # bytes: a smaller file with holes costs nothing to read
_MOST_PARTS = 10_000  # of a file, between its holes


class _LocalStore:
    max_folders = MAX_ENTRIES

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
        with _local_errors(path), open(path, "rb", opener=open_at_once) as file:
            size = _file_size(path, file)
            return file.read(size if limit is None else min(limit, size))

    def buffer(self, path: str) -> memoryview:
        with _local_errors(path), open(path, "rb", buffering=0, opener=open_at_once) as file:
            size = _file_size(path, file)
            bytes_of_file = kernels.memory.Memory(size, file.fileno())
            memory = memoryview(bytes_of_file)
            if bytes_of_file.is_file:  # a copy would go to the disk as well
                return memory
            done = 0
            while count := file.readinto(memory[done:]):
                done += count
            return memory[:done]

    def source(self, path: str) -> kernels.wire.Source:
        with _local_errors(path), open(path, "rb", buffering=0, opener=open_at_once) as file:
            return kernels.wire.Source(None, file.fileno(), _file_size(path, file))

    def pieces(self, path: str) -> Iterator[bytes]:
        with _local_errors(path), open(path, "rb", opener=open_at_once) as file:
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


def _file_size(path: str, file: BinaryIO) -> int:
    """The size of an open file in bytes.  Raises AccessError for pipes, sockets and devices, which have none."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        hint = "write the profile to a file first and give that"
        raise AccessError("this is a pipe, a socket or a device, not a file", path=path, hint=hint)
    if status.st_size >= _WORTH_A_LOOK and _is_mostly_hole(file.fileno(), status):
        raise AccessError(
            f"the file says that it has {status.st_size:,} bytes, but most of them were never written",
            path=path,
            hint="it was not copied completely; copy it again",
        )
    return status.st_size


def _is_mostly_hole(file: int, status: os.stat_result) -> bool:
    """Whether less than half of a file was written, as after a copy that made the file first and then failed.

    A file system that compresses keeps fewer blocks too; so the holes themselves are counted.
    """
    if getattr(status, "st_blocks", status.st_size) * 512 >= status.st_size // 2 or not hasattr(os, "SEEK_HOLE"):
        return False
    written = end = 0
    try:
        for _ in range(_MOST_PARTS):
            start = os.lseek(file, end, os.SEEK_DATA)
            end = os.lseek(file, start, os.SEEK_HOLE)
            written += end - start
    except OSError as error:
        if error.errno != errno.ENXIO:  # there is no data behind this place
            return False
    finally:
        os.lseek(file, 0, os.SEEK_SET)
    return written < status.st_size // 2


def open_at_once(path: str, flags: int) -> int:
    """Opens a file without waiting; opening a pipe without a writer would block."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _local_entry(folder: str, entry: os.DirEntry[str]) -> Entry:
    try:
        is_folder, is_link = entry.is_dir(), entry.is_symlink()
    except OSError:
        # A dangling or circular link: reading it raises the error.
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
        raise too_large(path) from error


@contextmanager
def reading(path: str) -> Iterator[None]:
    """A context in which a source may be read on: raises AccessError where the system cannot."""
    try:
        yield
    except OSError as error:
        raise _local_error(path, error) from error


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


LOCAL: Store = _LocalStore()
"""The disks of this machine."""
