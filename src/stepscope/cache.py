"""Caches derived data in the user's cache directory, never next to a profile.

    DIR/v1/KEY/NAME.bytes       a small result, as bytes
    DIR/v1/KEY/NAME.columns     arrays, mapped into memory when read
    DIR/ledger                  the bytes written since the last sweep

DIR is the platform's cache directory for users, or `STEPSCOPE_CACHE_DIR`; `STEPSCOPE_CACHE=off` switches the cache off
and `STEPSCOPE_CACHE_MAX_BYTES` bounds its size.  DIR may be a URL of an object store, which the workers of a cluster
share; it holds small results only, and what removes old ones is the store's own rule.  KEY is a hash of everything
that the data depends on: the identities of the files, the code, and the parameters (see `cache_key`), so an entry is
never updated and never out of date.

The cache is optional.  A missing, damaged or unwritable cache only costs time: reading returns None, writing does
nothing, and the first failure of a process is logged.  Entries are written under another name and then renamed, so a
reader finds a whole entry or none, and the last of two writers wins.

The columns are not in Arrow files, as exported tables are: importing pyarrow takes longer than reading the columns of a
100 MB profile, a record batch needs columns of one length where a trace's tables have several, and its buffers have no
checksum.  Both kinds of entry start with the same head: magic, length and checksum of what follows.  That is the data
itself in a `.bytes` file, and a JSON description of the raw arrays behind it in a `.columns` file.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import re
import struct
import sys
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache as memoized
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeVar

from stepscope.private_folders import OTHERS_WRITE, is_private, make_private
from stepscope.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

CACHE_VERSION = 1
"""The layout of the entries.  Raise it when the layout changes; the key already covers what the code computes."""

DEFAULT_MAX_BYTES = 2 << 30

MAX_LEDGER_BYTES = 64 * 1024
"""At this length the ledger is replaced by one sum."""

STALE_SECONDS = 3600
"""A temporary file that has not been touched for this long was left by a process that was killed."""

_CODE = (".py", ".so", ".pyd")
_OFF = frozenset({"off", "0", "no", "false"})
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_HEAD = struct.Struct("<8sQI")
_BYTES_MAGIC = b"SSCOPE_B"
_COLUMNS_MAGIC = b"SSCOPE_C"
_ALIGNMENT = 64
_LEDGER_LINE = struct.Struct("<Q")


class FileIdentity(Protocol):
    """Identifies a state of a file: a value whose `repr` is complete."""

    @property
    def is_certain(self) -> bool:
        """Whether a changed file is sure to have another identity."""


def cache_key(identities: Iterable[FileIdentity], *parameters: object) -> str | None:
    """The key of data derived from some files by this version of the code.

    Args:
        identities: those of all files that the data depends on, always in the same order.
        parameters: everything else that it depends on, in types with a complete `repr`: numbers, strings, tuples,
            frozen dataclasses.

    Returns:
        32 hexadecimal digits, or None if a file could change without a change of its identity.
    """
    files = list(identities)
    if not all(identity.is_certain for identity in files):
        return None
    import hashlib

    described = repr((_code_version(), files, parameters))
    return hashlib.blake2b(described.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """Where the cache is and how large it may grow.

    Attributes:
        folder: the directory; None if there is none on this machine.
        max_bytes: above this size the least recently used entries are removed.
        url: the folder in an object store that is used instead.  Without either, the cache is off.
    """

    folder: Path | None
    max_bytes: int = DEFAULT_MAX_BYTES
    url: str | None = None

    @staticmethod
    def from_environment() -> CacheOptions:
        """The options that the environment sets.  A size that is not a number is logged and ignored."""
        if os.environ.get("STEPSCOPE_CACHE", "").strip().lower() in _OFF:
            return CacheOptions(folder=None)
        chosen = os.environ.get("STEPSCOPE_CACHE_DIR", "")
        if "://" in chosen:
            return CacheOptions(folder=None, url=chosen.rstrip("/"))
        return CacheOptions(_default_folder(), _max_bytes(os.environ.get("STEPSCOPE_CACHE_MAX_BYTES", "")))


_reported: set[Path | str | None] = set()
"""Folders whose trouble was reported; a command that opens two profiles has two caches and says it once."""


class Cache:
    """Reads and writes entries.  One per process is enough; threads and processes may share the directory.

    A `key` comes from `cache_key`; None is always a miss.  A `name` distinguishes entries of one key and consists of
    letters, digits, dots, dashes and underscores.
    """

    def __init__(self, options: CacheOptions | None = None) -> None:
        """Takes the options from the environment unless they are given."""
        self._options = options or CacheOptions.from_environment()
        self._checked: dict[Path, bool] = {}

    @property
    def folder(self) -> Path | None:
        """The directory, or None if the cache is off or in an object store."""
        return self._options.folder

    @property
    def options(self) -> CacheOptions:
        """Where it is; another process makes the same cache of them."""
        return self._options

    @property
    def is_on(self) -> bool:
        """Whether anything is kept."""
        return self._options.folder is not None or self._options.url is not None

    def get_bytes(self, key: str | None, name: str) -> bytes | None:
        """The cached bytes, or None."""
        if self._options.url is not None:
            return self._get_remote(key, name)
        return self._get(self._path(key, name, "bytes"), lambda content: _check_content(content, _BYTES_MAGIC))

    def put_bytes(self, key: str | None, name: str, data: bytes) -> None:
        """Keeps bytes for later."""
        chunks = [_HEAD.pack(_BYTES_MAGIC, len(data), zlib.crc32(data)), data]
        if self._options.url is not None:
            self._write_remote(key, name, b"".join(chunks))
        else:
            self._write(self._path(key, name, "bytes"), chunks)

    def get_columns(
        self, key: str | None, name: str, only: Collection[str] | None = None
    ) -> dict[str, NDArray[Any]] | None:
        """The cached arrays, or None.

        They are read-only and mapped from the file: besides the check of each, only what is used is read.

        Args:
            key: see `Cache`.
            name: see `Cache`.
            only: the columns to read and check; all if None.  An unknown name raises KeyError.
        """

        def parse(content: memoryview) -> dict[str, NDArray[Any]]:
            columns = _read_columns(content)
            wanted = columns.keys() if only is None else only
            return {column: _read_array(content, columns[column]) for column in wanted}

        return self._get(self._path(key, name, "columns"), parse)

    def put_columns(self, key: str | None, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Keeps arrays of any lengths, shapes and plain types for later.  Raises TypeError for arrays of objects."""
        path = self._path(key, name, "columns")
        if path:
            self._write(path, _pack_columns(columns))

    # -- an object store -----------------------------------------------------------------------------------------------

    def _get_remote(self, key: str | None, name: str) -> bytes | None:
        from stepscope.errors import NotFoundError, StepscopeError
        from stepscope.formats import store

        url = self._url(key, name)
        if url is None:
            return None
        try:
            return _check_content(store.read_bytes(url), _BYTES_MAGIC)
        except (NotFoundError, _DamagedError):
            return None
        except StepscopeError as error:
            self._warn("read", url, error)
            return None

    def _write_remote(self, key: str | None, name: str, content: bytes) -> None:
        from stepscope.errors import StepscopeError
        from stepscope.formats import store

        url = self._url(key, name)
        if url is None or len(content) > self._options.max_bytes:
            return
        try:
            store.write_bytes(url, content)
        except StepscopeError as error:
            self._warn("written", url, error)

    def _url(self, key: str | None, name: str) -> str | None:
        if not re.fullmatch(_NAME, name):
            raise ValueError(f"not a name for a cache entry: {name!r}")
        return None if key is None else f"{self._options.url}/v{CACHE_VERSION}/{key}/{name}.bytes"

    # -- files ---------------------------------------------------------------------------------------------------------

    def _path(self, key: str | None, name: str, ending: str) -> Path | None:
        if not re.fullmatch(_NAME, name):
            raise ValueError(f"not a name for a cache entry: {name!r}")
        if key is None or self._options.folder is None:
            return None
        return self._options.folder / f"v{CACHE_VERSION}" / key / f"{name}.{ending}"

    def _get(self, path: Path | None, parse: Callable[[memoryview], T]) -> T | None:
        """The content of an entry, None if there is none; a damaged entry is removed."""
        content = self._map(path) if path else None
        if path is None or content is None:
            return None
        try:
            return parse(content)
        except _DamagedError:
            _remove(path)
            return None

    def _map(self, path: Path) -> memoryview | None:
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                if not self._is_own(path.parent, status.st_uid):
                    raise PermissionError(errno.EPERM, "another user could have written it")
                is_empty = status.st_size == 0
                content = memoryview(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            _mark_used(path)
        except FileNotFoundError:
            return None
        except (OSError, MemoryError) as error:
            self._warn("read", path, error)
            return None
        return content

    def _is_own(self, folder: Path, owner: int) -> bool:
        """Whether an entry can only come from the user of this process, who owns its file and both folders above.

        Somebody else's entries would be shown as facts: the folder that holds all may be shared.
        """
        if folder not in self._checked:
            self._checked[folder] = all(is_private(each, OTHERS_WRITE) for each in (folder, folder.parent))
        return self._checked[folder] and (not hasattr(os, "geteuid") or owner == os.geteuid())

    def _write(self, path: Path | None, chunks: Sequence[bytes | memoryview]) -> None:
        size = sum(len(chunk) for chunk in chunks)
        if path is None or size > self._options.max_bytes:
            return
        try:
            make_private(path.parent, 2, OTHERS_WRITE)  # the folder of a key, and that of the version above it
            _write_whole(path, chunks)
            self._add_to_ledger(path.parents[2], size)
        except OSError as error:
            self._warn("written", path, error)

    def _warn(self, what: str, path: Path | str, error: BaseException) -> None:
        where = self._options.url or self.folder
        if where in _reported:
            return
        _reported.add(where)
        _log(
            "stepscope: the cache could not be %s (%s: %s); everything works without it, only slower. "
            "STEPSCOPE_CACHE_DIR chooses another directory, STEPSCOPE_CACHE=off none",
            what,
            path,
            error,
        )

    # -- size ----------------------------------------------------------------------------------------------------------

    def _add_to_ledger(self, folder: Path, size: int) -> None:
        """Adds to the ledger, and sweeps when the bound may be exceeded.

        The ledger saves looking at every entry at every put: it holds the size found by the last sweep and that of
        each entry written since, eight bytes each, appended in one write.  It may say too much, and too little
        only by what other processes wrote while a sweep ran.
        """
        ledger = folder / "ledger"
        with ledger.open("ab") as file:
            is_new = file.tell() == 0
            file.write(_LEDGER_LINE.pack(size))
        if is_new or _ledger_total(ledger) > self._options.max_bytes:
            left = _sweep(folder, self._options.max_bytes)
            _write_whole(ledger, [_LEDGER_LINE.pack(left)])


# ---- the key ---------------------------------------------------------------------------------------------------------


@memoized
def _code_version() -> tuple[object, ...]:
    """Changes with the release and, in a checkout, with the source code."""
    folder = Path(__file__).parent
    release = getattr(sys.modules[__package__ or folder.name], "__version__", "")
    rooms = ("model", "kernels", "vocabulary", "formats", "analysis", "report")
    stamps = [_stamp_of_sources(folder / room) for room in rooms]
    return CACHE_VERSION, release, tuple(stamps)


def _stamp_of_sources(folder: Path | str) -> tuple[int, int, int]:
    """Number, total size and latest time of the Python files and compiled modules at and below a folder."""
    count = size = latest = 0
    # An editor may replace the file at this moment.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.endswith(_CODE):
                    status = entry.stat()
                    count, size, latest = count + 1, size + status.st_size, max(latest, status.st_mtime_ns)
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    below = _stamp_of_sources(entry.path)
                    count, size, latest = count + below[0], size + below[1], max(latest, below[2])
    return count, size, latest


# ---- the layout of an entry ------------------------------------------------------------------------------------------


class _DamagedError(Exception):
    """An entry is not what was written."""


def _check_content(content: bytes | memoryview, magic: bytes) -> bytes:
    """The bytes behind a head with their length and checksum.  Raises _DamagedError if these differ."""
    if len(content) < _HEAD.size:
        raise _DamagedError
    found, length, checksum = _HEAD.unpack_from(content)
    data = bytes(content[_HEAD.size :])
    if found != magic or length != len(data) or checksum != zlib.crc32(data):
        raise _DamagedError
    return data


@dataclass(frozen=True, slots=True)
class _Column:
    """The place of an array in a file; `start` is the start of the gap before it."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    gap: int
    size: int
    checksum: int


def _pack_columns(columns: Mapping[str, NDArray[Any]]) -> list[bytes | memoryview]:
    """The file in parts: a head with its own length and checksum, then each array at a multiple of 64 bytes.

    The checksum of an array counts the gap before it, so that every byte of the file is under one.
    """
    import json

    arrays = {name: _plain_array(name, array) for name, array in columns.items()}
    parts: list[bytes | memoryview] = []
    described, position = [], 0
    for name, array in arrays.items():
        gap = bytes(-position % _ALIGNMENT)
        data = array.reshape(-1).view("u1").data
        described.append([name, array.dtype.str, array.shape, len(gap), zlib.crc32(data, zlib.crc32(gap))])
        parts += [gap, data]
        position += len(gap) + len(data)
    text = json.dumps(described).encode()
    text += b" " * (-(_HEAD.size + len(text)) % _ALIGNMENT)
    return [_HEAD.pack(_COLUMNS_MAGIC, len(text), zlib.crc32(text)), text, *parts]


def _plain_array(name: str, array: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    plain = np.asarray(array, order="C")
    if plain.dtype.hasobject or plain.dtype.names:
        raise TypeError(f"column {name!r} cannot be kept: its type {plain.dtype} is not plain")
    return plain


def _read_columns(content: memoryview) -> dict[str, _Column]:
    """The columns listed in the head of a file.  Raises _DamagedError unless head and length are correct."""
    import json

    if len(content) < _HEAD.size:
        raise _DamagedError
    length = _HEAD.unpack_from(content)[1]
    end = _HEAD.size + length
    described = json.loads(_check_content(content[:end], _COLUMNS_MAGIC))
    columns, position = {}, end
    for name, dtype, shape, gap, checksum in described:
        size = _size_of(dtype, shape)
        columns[name] = _Column(dtype, tuple(shape), position, gap, size, checksum)
        position += gap + size
    if position != len(content):
        raise _DamagedError
    return columns


def _size_of(dtype: str, shape: Sequence[int]) -> int:
    import numpy as np

    return np.dtype(dtype).itemsize * math.prod(shape)


def _read_array(content: memoryview, column: _Column) -> NDArray[Any]:
    import numpy as np

    start = column.start + column.gap
    data = content[start : start + column.size]
    if zlib.crc32(data, zlib.crc32(content[column.start : start])) != column.checksum:
        raise _DamagedError
    return np.frombuffer(data, dtype=column.dtype).reshape(column.shape)


# ---- files -----------------------------------------------------------------------------------------------------------


def _write_whole(path: Path, chunks: Sequence[bytes | memoryview]) -> None:
    """Puts a file in its place at once.  Raises OSError and then leaves nothing behind."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(6).hex()}.tmp")
    try:
        # Not synced to the disk: after a power cut the checksum reveals an incomplete file.
        with _create_file(temporary) as file:
            file.writelines(chunks)
        temporary.replace(path)
    except BaseException:
        _remove(temporary)
        raise


def _create_file(path: Path) -> BinaryIO:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        return path.open("xb")
    except FileNotFoundError:
        # A sweep of another process removed the folder while it was empty.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path.open("xb")


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _mark_used(path: Path) -> None:
    """Records the use for the sweep.  The access time is not enough: most file systems update it rarely."""
    with suppress(OSError):
        os.utime(path)


# ---- the sweep -------------------------------------------------------------------------------------------------------

_VERSION = r"v\d+"
_KEY = r"[0-9a-f]{32}"
_FILE = r"[^/]+\.(bytes|columns)|[^/]+\.\d+-[0-9a-f]{12}\.tmp"
_STALE_LEDGER = r"ledger\.\d+-[0-9a-f]{12}\.tmp"


def _sweep(folder: Path, max_bytes: int) -> int:
    """Removes the least recently used entries until the bound holds, and returns the bytes left.

    Entries of other versions of the layout count too.  Only what the cache itself could have written is touched, since
    a user may point it at a directory that holds other things.
    """
    entries = sorted(_entries(folder))
    total = sum(size for _, size, _ in entries)
    # Somewhat below the bound, so that the next puts need no sweep.
    goal = max_bytes * 4 // 5 if total > max_bytes else total
    for _, size, path in entries:
        if total <= goal:
            break
        _remove(path)
        total -= size
    return total


def _entries(folder: Path) -> list[tuple[int, int, Path]]:
    """Time of use, size and path of each entry.  Also removes files of killed processes and empty folders."""
    entries = []
    for path in [*_list_matching(folder, _STALE_LEDGER), *_files_of_keys(folder)]:
        try:
            status = path.stat()
        except OSError:
            # Another process has just removed it.
            continue
        if path.suffix != ".tmp":
            entries.append((status.st_mtime_ns, status.st_size, path))
        elif time.time() - status.st_mtime > STALE_SECONDS:
            _remove(path)
    return entries


def _files_of_keys(folder: Path) -> Iterator[Path]:
    for version in _list_matching(folder, _VERSION):
        for key in _list_matching(version, _KEY):
            yield from _list_matching(key, _FILE)
            with suppress(OSError):
                # Refused, as it should be, unless the folder is empty.
                key.rmdir()


def _list_matching(folder: Path, wanted: str) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if re.fullmatch(wanted, path.name)]
    except OSError:
        return []


def _ledger_total(path: Path) -> int:
    """The sum of the ledger; more than any bound if it is too long to be summed at every put."""
    with path.open("rb") as file:
        content = file.read(MAX_LEDGER_BYTES)
    if len(content) == MAX_LEDGER_BYTES:
        return 1 << 64
    whole = len(content) // _LEDGER_LINE.size * _LEDGER_LINE.size
    return sum(size for (size,) in _LEDGER_LINE.iter_unpack(content[:whole]))


# ---- the environment -------------------------------------------------------------------------------------------------


def _default_folder() -> Path | None:
    chosen = os.environ.get("STEPSCOPE_CACHE_DIR")
    chosen = chosen or _users_cache_folder()
    try:
        folder = Path(chosen).expanduser()
    except RuntimeError:
        return None
    # Without a home directory: do not create a folder named "~" in the working directory.
    return None if folder.parts[:1] == ("~",) else folder.absolute()


def _users_cache_folder(platform: str = sys.platform) -> str:
    """The system's cache directory for users.  Linux is handled here: importing the library takes as long as a cache
    hit."""
    if platform == "linux":
        home = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
        return f"{home}/stepscope"
    import platformdirs

    folder: str = platformdirs.user_cache_dir("stepscope", appauthor=False)
    return folder


def _max_bytes(text: str) -> int:
    if not text.strip():
        return DEFAULT_MAX_BYTES
    if text.strip().isdecimal():
        return int(text)
    _log("STEPSCOPE_CACHE_MAX_BYTES is %r, which is not a number of bytes; %d is used", text, DEFAULT_MAX_BYTES)
    return DEFAULT_MAX_BYTES


def _log(message: str, *arguments: object) -> None:
    import logging

    logging.getLogger(__name__).warning(message, *arguments)
