"""Paths and URLs as text.  Nothing here accesses a disk or a store."""

# A path here may be a URL, which pathlib would break: it replaces two slashes by one.
# ruff: noqa: PTH100, PTH111, PTH118, PTH120, PTH206

from __future__ import annotations

import os


def is_remote(path: str) -> bool:
    """True if the path is a URL of a remote store.  `file://` is local."""
    return "://" in path and not path.startswith("file://")


def plain(path: str | os.PathLike[str]) -> str:
    """The path as a string, with `~` expanded, and without `file://` and a slash at the end."""
    text = os.fspath(path)
    if is_remote(text):
        scheme, _, rest = text.partition("://")
        return f"{scheme}://{rest.rstrip('/')}"
    text = os.path.expanduser(text.removeprefix("file://"))
    return text.rstrip("/") or ("/" if text.startswith("/") else os.curdir)


def absolute(path: str) -> str:
    """The absolute path; a URL is already absolute."""
    return path if is_remote(path) else os.path.abspath(path)


def join(folder: str, name: str) -> str:
    """The path of a name in a folder."""
    if not is_remote(folder):
        return os.path.join(folder, name)
    # "zip://inner::s3://bucket/file.zip": the part before the first "::" is the path, the rest says where it is.
    head, chain, tail = folder.partition("::")
    scheme, _, rest = head.partition("://")
    inside = (
        f"{rest.rstrip('/')}/" if rest.rstrip("/") else rest
    )  # at the root of a store nothing stands before the name
    return f"{scheme}://{inside}{name}{chain}{tail}"


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
