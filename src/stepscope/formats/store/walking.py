"""Bounded walks: which folders there are below a path, and the files in them."""

from __future__ import annotations

import heapq
from dataclasses import field

from stepscope.errors import InputError, Problem
from stepscope.formats.store.base import Entry, Store
from stepscope.formats.store.paths import join
from stepscope.records import dataclass

SKIPPED_FOLDERS = frozenset({"node_modules", "site-packages", "__pycache__", "lost+found"})
"""Folders that are never entered, besides hidden ones: full of files, and none of them a profile."""

FIRST_FOLDER = "plugins"
"""The folder that a walk enters before all others: TensorBoard's plugins keep their data below it."""


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


_FIRST, _ORDINARY, _LINKED = range(3)


@dataclass
class Walker:
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
        """Walks.  Raises NotFoundError, AccessError if the first folder itself cannot be listed."""
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
