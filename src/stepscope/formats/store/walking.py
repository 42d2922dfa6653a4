"""Bounded walks: the folders below a path, and their files."""

from __future__ import annotations

import heapq
import os
from collections.abc import Sequence
from dataclasses import field, replace

from stepscope.errors import InputError, Problem
from stepscope.formats.store.base import Entry, Store
from stepscope.formats.store.paths import join
from stepscope.records import dataclass

SKIPPED_FOLDERS = frozenset({"node_modules", "site-packages", "__pycache__", "lost+found"})
"""Folders that are never entered, besides hidden ones: they hold many files but no profiles."""

FIRST_FOLDER = "plugins"
"""The folder that a walk enters first: TensorBoard's plugins keep their data below it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that a walk has listed.  `files` are sorted by name; the first folder has depth 0."""

    path: str
    depth: int
    files: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """What a bounded walk found.

    Attributes:
        folders: sorted by depth, then path.
        problems: folders that could not be listed (`no-access`) and limits that were reached (`search-bound` for the
            number of entries or folders, `search-depth` for the depth).
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
    """The state of one walk.  `queue` is a heap of (rank, depth, path).

    Attributes:
        within: the real paths that links may lead to; None for any.
    """

    store: Store
    max_depth: int
    entries_left: int
    folders_left: int
    within: tuple[str, ...] | None = None
    queue: list[tuple[int, int, str]] = field(default_factory=list)
    seen: set[object] = field(default_factory=set)
    folders: list[Folder] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    too_deep: str | None = None
    start: str = ""

    def run(self, start: str) -> Walk:
        """Does the walk.  Raises NotFoundError, AccessError if the first folder itself cannot be listed."""
        self.start = start
        self._visit(_ORDINARY, 0, start)
        while self.queue and self.entries_left > 0 and self.folders_left > 0:
            rank, depth, path = heapq.heappop(self.queue)
            try:
                self._visit(rank, depth, path)
            except InputError as error:
                self.problems.append(error.problem)
        self._report_limits(start)
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
            self._add_problem(path, f"only the first {len(entries):,} entries of this folder were checked")
            self._add_cut_off(path, entries)
        entries = [entry for entry in sorted(entries, key=lambda entry: entry.name) if self._may_follow(entry)]
        self.folders.append(Folder(path, depth, tuple(entry for entry in entries if not entry.is_folder)))
        for entry in entries:
            if entry.is_folder and not entry.name.startswith(".") and entry.name not in SKIPPED_FOLDERS:
                self._enqueue(rank, depth + 1, entry)

    def _may_follow(self, entry: Entry) -> bool:
        if not entry.is_link:
            return True
        if entry.is_folder and _holds(entry.path, self.start):
            problem = Problem("link", "a link to a folder that holds this one was not followed", entry.path)
            self.problems.append(replace(problem, hint="give that folder itself to search all of it"))
            return False
        if self.within is None or is_within(entry.path, self.within):
            return True
        problem = Problem("link", "a link that leads out of the logdir was not followed", entry.path)
        self.problems.append(replace(problem, hint="--follow-links allows it"))
        return False

    def _add_cut_off(self, path: str, entries: list[Entry]) -> None:
        """Adds the folder that matters most if it is among the names that were not read, in place."""
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

    def _report_limits(self, start: str) -> None:
        if self.queue:
            self._add_problem(start, f"the search stopped with {len(self.queue):,} folders left to search")
        if self.too_deep:
            reason = f"folders deeper than {self.max_depth} levels, such as this one, were not searched"
            self._add_problem(self.too_deep, reason, code="search-depth")

    def _add_problem(self, path: str, reason: str, code: str = "search-bound") -> None:
        hint = "give a path closer to the profiles"
        self.problems.append(Problem(code=code, reason=reason, path=path, hint=hint))


def is_within(path: str, real_folders: Sequence[str]) -> bool:
    """Whether a local path lies in one of some real folders once all links are followed."""
    real = os.path.realpath(path)
    return any(real == folder or real.startswith(f"{folder.rstrip(os.sep)}{os.sep}") for folder in real_folders)


def _holds(link: str, folder: str) -> bool:
    """Whether a link leads to a folder above another."""
    real, inner = os.path.realpath(link), os.path.realpath(folder)
    return real != inner and is_within(inner, (real,))
