"""The messages if no profile was found: what was searched for, what is there instead, and which path may be meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import PurePath

from stepscope.errors import InputError, NotFoundError, Problem, counted
from stepscope.formats import not_recorded, store
from stepscope.formats.base import format_of
from stepscope.formats.naming import join_names, printable

_WEB = ("http://", "https://")
_MISTYPED = 0.7  # two names at least this similar may be a typing mistake

CAPTURE_HINT = "record one with `stepscope run SCRIPT`, stepscope.Profile(LOGDIR) or the framework's own profiler"

_SCALARS = "TensorBoard events (events.out.tfevents*)"
_KERAS_HINT = (
    "record one with `stepscope run SCRIPT`; Keras' TensorBoard callback records only the batches of profile_batch,"
    " none by default: set it to batches that training reaches, such as profile_batch=(10, 15)"
)
_KNOWN_LABELS = (
    (re.compile(r".*tfevents.*"), _SCALARS),
    (re.compile(r"(.*\.)?xplane\.pb\.\w+"), "a packed or partial XSpace (*.xplane.pb.*)"),
    (
        re.compile(r".*\.(nsys-rep|qdrep|qdstrm)"),
        "a report of Nsight Systems (*.nsys-rep), to be exported by `nsys export --type sqlite`",
    ),
    (re.compile(r"(.*\.)?hlo_proto\.pb"), "an HLO module (*.hlo_proto.pb)"),
    (
        re.compile(
            r".*\.(op_stats(_v2)?|dcn_collective_stats|smart_suggestion)\.pb|.*\.SSTABLE|cache_version\.txt|\.cached_tools\.json"
        ),
        "a cache that XProf made of a profile",
    ),
)


def missing_path_error(root: str) -> NotFoundError:
    """The error for a path that does not exist."""
    return NotFoundError("there is no such file or folder", path=root, hint=hint_near(root))


def no_profile_error(root: str, walk: store.Walk, problems: list[Problem]) -> NotFoundError:
    """The error for a folder without a profile in it."""
    depth = max(folder.depth for folder in walk.folders)
    where = f"{counted(len(walk.folders), 'folder')} with {counted(walk.file_count, 'file')}"
    where += f", {counted(depth, 'level')} deep" if depth else ""
    census = _count_kinds(entry.name for folder in walk.folders for entry in folder.files)
    reason = f"no profile here, only {census} (searched {where})"
    notes = [problem for problem in problems if problem.code == not_recorded.CODE]
    if notes:  # the program that was to record knows better than any search
        said = "; ".join(dict.fromkeys(note.reason for note in notes))
        return NotFoundError(f"{said} ({where})", path=root, hint=notes[0].hint)
    reasons = "; ".join(f"{problem.path}: {problem.reason}" for problem in problems[:3])
    more = f"; and {len(problems) - 3} more problems" if len(problems) > 3 else ""
    hint = _KERAS_HINT if _SCALARS in census else hint_near(root)
    if not walk.file_count:
        reason = f"no profile in {where}: no profiler was started, or its job ended before the profiler did"
    return NotFoundError(reason, path=root, lost=reasons + more or None, hint=hint)


def _count_kinds(names: Iterable[str]) -> str:
    """The kinds of files and their counts, the most frequent first."""
    counts = Counter(_file_label(name) for name in names)
    return join_names((f"{count:,} {label}" for label, count in counts.most_common()), limit=6)


def _file_label(name: str) -> str:
    known = leftover_label(name)
    if known:
        return known.removeprefix("an ").removeprefix("a ")
    ending = PurePath(name.removesuffix(".gz")).suffix
    return printable(f"*{ending}" if ending else "without an ending")


def leftover_label(name: str) -> str | None:
    """What a file is by its name, if profilers leave it behind and it is not a profile; otherwise None."""
    return next((label for pattern, label in _KNOWN_LABELS if pattern.fullmatch(name)), None)


def hint_near(path: str) -> str:
    """A hint with the profiles near a path, or with how to record one."""
    if path.startswith(_WEB):  # where a server that does not answer looks like a file that does not exist
        return "check the address, and that the server answers"
    near = _find_meant(path)
    if not near:
        return CAPTURE_HINT
    if len(near) == 1:
        return f"there are profiles in {near[0]}: give that path"
    return f"there are profiles in {near[0]} and {counted(len(near) - 1, 'more folder')}: give the path of one"


def _find_meant(path: str) -> list[str]:
    """Folders with profiles that a path may mean, the likeliest first: a name mistyped, or the folders around it.

    Whatever else lies beside it may be another job's, or another person's.
    """
    folder, name = store.parent(path), store.basename(path)
    while folder is not None and (above := store.parent(folder)) is not None and not _is_there(folder):
        folder, name = above, store.basename(folder)
    # Never search from the root of a disk or a bucket: everything is below it.
    if folder is None or store.parent(folder) is None:
        return []
    try:
        walk = store.walk(folder, max_depth=5, max_entries=3000, max_folders=200)
    except InputError:
        return []
    found = [listed.path for listed in walk.folders if any(_is_profile(entry.name) for entry in listed.files)]
    place, asked = len(store.parts(folder)), store.parts(path)

    def likeness(logdir: str) -> float:
        """How much its name is like the one asked for; 0 for what lies elsewhere."""
        parts = store.parts(logdir)
        if parts == asked:  # it has names of profiles, and none of them can be opened
            return 0.0
        if parts == asked[: len(parts)]:
            return _MISTYPED
        alike = SequenceMatcher(a=name, b=parts[place] if len(parts) > place else "").ratio()
        return alike if alike >= _MISTYPED else 0.0

    likely = {logdir: likeness(logdir) for logdir in map(_logdir_of, found)}
    return sorted((logdir for logdir, alike in likely.items() if alike), key=likely.__getitem__, reverse=True)


def _is_there(folder: str) -> bool:
    try:
        return store.kind(folder) is not None
    except InputError:
        return False


def _is_profile(name: str) -> bool:
    fmt = format_of(name)
    return fmt is not None and fmt.in_folders


def _logdir_of(folder: str) -> str:
    """The folder that holds `plugins` if the folder is a run in TensorBoard's layout; otherwise the folder itself."""
    if store.parts(folder)[-3:-1] != ("plugins", "profile"):
        return folder
    for _ in range(3):
        folder = store.parent(folder) or folder
    return folder
