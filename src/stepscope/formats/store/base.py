"""The interface of all stores, and what they return."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, Protocol

from stepscope.errors import AccessError
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope import kernels

MAX_ENTRIES = 100_000
"""Names read in one walk: a quarter of a second on a local disk."""

Kind = Literal["file", "folder", "other"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Distinguishes one state of a file from another without reading it.

    Attributes:
        path: absolute path, or URL.
        size: bytes; None if the store does not say.
        modified_ns: time of the last change of the content, ns since the epoch; None if unknown.
        changed_ns: time of the last change of content or attributes, which no tool can set; None in remote stores.
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
        """True if a changed file certainly has another identity.  Otherwise nothing may be cached under it."""
        return self.checksum is not None or self.modified_ns is not None


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder.

    Attributes:
        name: base name.
        path: path or URL, starting with the folder's path as given.
        is_folder: True for a folder, also if reached through a symbolic link.
        is_link: True for a symbolic link.
        identity: the identity if the listing holds it (remote stores); otherwise None, and `identity(path)` finds it.
    """

    name: str
    path: str
    is_folder: bool
    is_link: bool = False
    identity: Identity | None = None


class Store(Protocol):
    """A place that holds files.  Paths may be absolute, relative, or whole URLs."""

    max_folders: int

    def kind(self, path: str) -> Kind | None:
        """What is at a path, following links; None if nothing."""

    def identity(self, path: str) -> Identity:
        """The identity of a file."""

    def read(self, path: str, limit: int | None) -> bytes:
        """The first `limit` bytes of a file, or all."""

    def buffer(self, path: str) -> memoryview:
        """All of a file."""

    def source(self, path: str) -> kernels.wire.Source:
        """All of a file, for a reader that asks for what it needs."""

    def pieces(self, path: str) -> Iterator[bytes]:
        """All of a file, piece by piece."""

    def entries(self, path: str, limit: int) -> tuple[list[Entry], bool]:
        """At most `limit` entries of a folder, and True if there are more."""

    def folder_id(self, path: str) -> object:
        """An id of a folder, equal for two paths to the same folder."""

    def forget(self, path: str) -> None:
        """Drops cached listings, so that new sessions are found."""


def too_large(path: str) -> AccessError:
    """The error for a file that does not fit into memory."""
    return AccessError("there is not enough memory to hold this file", path=path, hint="use a machine with more memory")
