"""What other installed packages add: formats, tools, rules and exports, as entry points in groups of ours.

A package that adds a tool has in its `pyproject.toml`

    [project.entry-points."stepscope.tools"]
    my-tool = "my_package.my_tool:TOOL"

and needs nothing else: no import, no registration.  What cannot be loaded is left out, with a warning.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar

from stepscope.records import dataclass

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@dataclass(frozen=True)
class Plugins(Generic[T]):
    """What was found.

    Attributes:
        found: the objects, in the order of the packages.
        warnings: a sentence for each entry point without one.
        editions: the package and version that each object comes from.
    """

    found: tuple[T, ...]
    warnings: tuple[str, ...]
    editions: tuple[str, ...]


@cache
def plugins_of(group: str, kind: type[T]) -> Plugins[T]:
    """The objects of a kind that the entry points of a group name; found once per process."""
    found: list[T] = []
    warnings: list[str] = []
    editions: list[str] = []
    for point in entry_points_of(group):
        thing = _load(point, kind.__name__.lower(), warnings)
        if isinstance(thing, kind):
            found.append(thing)
            editions.append(_edition(point))
        elif thing is not None:
            warnings.append(f"the entry point {point.name!r} of {point.value} is not a {kind.__name__.lower()}")
    return Plugins(tuple(found), tuple(warnings), tuple(editions))


def _load(point: EntryPoint, noun: str, warnings: list[str]) -> object | None:
    """What an entry point names; None, and a warning, if it cannot be imported."""
    try:
        thing: object = point.load()
    except (Exception, SystemExit) as error:  # whatever the package's code does
        reason = f"it ends the program ({error})" if isinstance(error, SystemExit) else error
        warnings.append(f"the {noun} {point.name!r} of {point.value} cannot be loaded: {reason}")
        return None
    return thing


def _edition(point: EntryPoint) -> str:
    package = point.dist
    return "" if package is None else f"{package.name} {package.version}"


@cache
def entry_points_of(group: str) -> Sequence[EntryPoint]:
    """The entry points of a group; none if no installed package has the group."""
    if not any(_may_have(place, group) for place in sys.path):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _may_have(place: str, group: str) -> bool:
    """Whether a package installed there has entry points of a group, or may have them.

    Only importlib.metadata is sure, but importing it takes forty milliseconds, and few have plugins.
    """
    try:
        packages = _entry_point_files(place)
    except NotADirectoryError:  # an archive
        return True
    except OSError:
        return False
    return any(f"[{group}]".encode() in content for content in packages)


@cache
def _entry_point_files(place: str) -> Sequence[bytes]:
    """What the packages in a folder say about their entry points.  Raises OSError."""
    with os.scandir(place or os.curdir) as entries:
        folders = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
    return [content for content in map(_read_entry_points, folders) if b"[stepscope." in content]


def _read_entry_points(folder: str) -> bytes:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123 - hundreds of folders
            return file.read()
    except OSError:
        return b""


def forget() -> None:
    """Looks again when the next plugins are asked for: packages were installed while this process ran."""
    for found in (plugins_of, entry_points_of, _entry_point_files):
        found.cache_clear()
