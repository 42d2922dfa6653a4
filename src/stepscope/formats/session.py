"""Finds profiles: from any path that a user gives, to the sessions and the files of their hosts.

    LOGDIR/plugins/profile/RUN/HOST.xplane.pb           TensorFlow, JAX, PyTorch/XLA: session RUN, one file per host
    LOGDIR/train/plugins/profile/RUN/HOST.xplane.pb     the same below a TensorBoard run: session train/RUN
    LOGDIR/plugins/profile/RUN/HOST.trace.json.gz       JAX's copy of the xplane file: left out
    LOGDIR/plugins/profile/RUN/HOST.xplane.pb.partial   what a capture has flushed: left out if HOST.xplane.pb exists
    LOGDIR/plugins/profile/RUN/HOST.pt.trace.json.gz    what HOST.xplane.pb was made from: left out if that exists
    FOLDER/WORKER.STAMP.pt.trace.json.gz                torch.profiler: one host per worker; if a worker has several
                                                        stamps, the n-th of each worker form session FOLDER/span_n
    FOLDER/any profile                                  session FOLDER
    FOLDER/any.json                                     if no file of the folder is a profile by name but this one is by
                                                        content: session FOLDER/any.json; see `by_content`
    FOLDER/any                                          the same, if nothing else is found
    FOLDER/rank_N/any profile                           session FOLDER of all ranks; see `joining`

The **newest** session is the one with the latest time in the run's name (`2026_11_21_03_53_27`, as TensorFlow and JAX
name runs, or the Unix time that torch.profiler puts into file names), because copying a logdir changes the times of its
files.  Other runs count as written at the time of their newest file.  Spans of one folder are in numerical order.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import glob
from itertools import compress, islice

from stepscope.errors import InputError, NotFoundError, Problem, UsageError, counted
from stepscope.formats import store
from stepscope.formats.base import Format, format_of
from stepscope.formats.candidates import (
    NS_PER_UNIT_BY_DIGITS,
    WATCH_MARKER,
    Candidate,
    Found,
    Order,
    describe_file,
    drop_packed_copies,
    written_moment,
    written_ns,
)
from stepscope.formats.form import NO_STAMP, Companion
from stepscope.formats.joining import join_ranks
from stepscope.formats.naming import join_names, natural_key, printable, unique_names
from stepscope.formats.not_recorded import read_notes
from stepscope.records import dataclass
from stepscope.vocabulary.patterns import Pattern

_MOST_RUNS = 3  # that the name of a joined session lists

LOCAL_HOST = "localhost"
"""The name of a host whose file does not name it."""

GRAPH_CAPTURES = {"capture_traces", "graph_capture_profile"}
"""Folders in which vLLM, SGLang, ATOM and xDiT keep traces of the capture of graphs, beside those of serving. SGLang's
own is the second (sgl-project/sglang#24370)."""

_GRAPH_CAPTURE = Pattern(r"(.*_)?bs_\d+_rank\d+\.|graph_capture_rank_\d+\.")
"""How they name such a trace: by runner, batch size and rank (sgl-project/sglang#24370), or by rank alone (vLLM's in
AMD-AGI/Hyperloom#394)."""

_RANK = Pattern(r"(?:rank[_-]?|TP-)(\d+)(?!\d)")

BESIDE = "beside"
"""The code of what matters to a list of sessions, and not to what is said of one: it lies beside and was left out."""

MAX_BESIDE = 16
"""Files of unknown names beside profiles that are named."""
MAX_SPREAD_MINUTES = 10
"""The ranks of a job write one span within this time; exporting a large trace takes minutes."""


@dataclass(frozen=True, slots=True)
class HostFile:
    """The file that holds one host's trace.

    Attributes:
        host: name, unique in its session.
        path: path or URL.
        format: how to read it.
        size: bytes; None if the store does not say.
        captures: traces of the capture of the graphs that the host replays.
        process: which of several processes in the file it is, by the name that reading gives it; empty for all of it.
    """

    host: str
    path: str
    format: Format
    size: int | None
    captures: tuple[HostFile, ...] = ()
    process: str = ""

    def processes(self, names: Sequence[str]) -> tuple[HostFile, ...]:
        """The file as a host for each of its processes; the file itself if it holds one."""
        return tuple(replace(self, host=name, process=name) for name in names) if len(names) > 1 else (self,)


@dataclass(frozen=True, slots=True)
class Session:
    """One capture, of one or many hosts.

    Attributes:
        run: display name, unique among the sessions found with it: `<tensorboard run>/<run>`, or `<run>`.
        path: the folder that holds the files.
        files: at least one, in the order of the hosts' names.
        problems: what the search could not read and what it left out, to be shown as warnings.
        choices: the number of sessions that were found with it.
        joined: the folders of the sessions that were joined into this one; empty for a session as found.
    """

    run: str
    path: str
    files: tuple[HostFile, ...]
    problems: tuple[Problem, ...] = ()
    choices: int = 1
    joined: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts' names, in the order of the files."""
        return tuple(file.host for file in self.files)


# ---- finding ---------------------------------------------------------------------------------------------------------


def find_sessions(path: str | os.PathLike[str], within: Sequence[str] | None = None) -> tuple[Session, ...]:
    """All sessions at or below a path, the newest first.

    Args:
        path: a profile file, a session's folder, a logdir or any parent of these; local, or a URL that fsspec knows.
        within: the folders that links may lead to; None for any.

    Raises:
        NotFoundError: there is nothing, or no profile; says what was searched for, where, and what is there instead.
        UnreadableError: `path` is a file but not a profile.
        AccessError: there is no permission to read it.
        UsageError: the path is empty, or is not a path.
    """
    _require_path(path)
    root = store.plain(path)
    kind = store.kind(root)
    if kind is None:
        from stepscope.formats.no_profile import missing_path_error

        raise missing_path_error(root)
    if kind == "file" and root.endswith(".zip") and not store.is_remote(root):
        root, kind = f"zip://::{store.absolute(root)}", "folder"
    if kind != "folder":
        return (_session_of_file(root),)
    walk = store.walk(root, within=within)
    problems = list(walk.problems)
    found = [candidate for folder in walk.folders for candidate in _folder_candidates(root, folder, problems)]
    if not found or not store.is_remote(root):  # each look at a remote file takes a while
        beside: list[Problem] = []
        found += _find_by_content(root, walk, beside if found else problems)
        problems += [replace(problem, code=BESIDE) for problem in beside if problem.code == "search-bound"]
    if not found and not store.is_remote(root):
        found = _find_by_content(root, walk, problems, whatever_name=True)
    found = _pass_over(_set_captures_aside(found, problems), problems)
    problems += read_notes(walk)
    found = join_ranks(_prefer_time(found, problems))
    if not found:
        from stepscope.formats.no_profile import no_profile_error

        raise no_profile_error(root, walk, problems)
    return _name_sessions(sorted(found, key=lambda candidate: candidate.order, reverse=True), problems)


def _require_path(path: object) -> None:
    if not isinstance(path, str | os.PathLike):
        hint = "give one file or folder as a text or a Path; files of one run are read together if they lie together"
        raise UsageError(f"{type(path).__name__} {path!r:.60} is not a path", hint=hint)
    if not os.fspath(path):
        raise UsageError("the path is empty", hint="give a file or a folder; perhaps a shell variable is not set")


def find_session(path: str | os.PathLike[str], run: str | None = None) -> Session:
    """The newest session at or below a path, or the given run.

    Args:
        path: as for `find_sessions`.
        run: a session's `run`, or its last part if that is unique.

    Raises:
        UsageError: there is no such run, or more than one; the message lists the runs.
        InputError: as for `find_sessions`.
    """
    sessions = find_sessions(path)
    if run is None:
        return sessions[0]
    exact = [session for session in sessions if session.run == run]
    matching = exact or [session for session in sessions if session.run.endswith(f"/{run}")]
    if len(matching) == 1:
        return matching[0]
    reason = f"{len(matching)} runs are named {run}" if matching else f"there is no run named {run}"
    hint = f"the runs are: {join_names([session.run for session in matching or sessions])}"
    raise UsageError(reason, code="unknown-run", path=os.fspath(path), hint=hint)


def find_joined_session(paths: Sequence[str | os.PathLike[str]], run: str | None = None) -> Session:
    """The newest session at or below each of several paths, such as a folder per worker, as one session of all hosts.
    Those that were written long before the newest one are of another job, and are left out with a warning.

    A path with `*`, `?` or `[` that does not exist as it is stands for the local files and folders that it matches.

    Args:
        paths: at least one, each as for `find_sessions`.
        run: the run to take at each path.

    Raises:
        UsageError, InputError: as for `find_session`; NotFoundError if a pattern matches nothing.
    """
    places = [place for path in paths for place in _expand_pattern(path)]
    found = [find_session(place, run) for place in places]
    sessions, problems = _of_one_time(found)
    if len(sessions) == 1:
        return replace(sessions[0], problems=(*sessions[0].problems, *problems))
    files = [file for session in sessions for file in session.files]
    hosts = Counter(file.host for file in files)
    owners = [
        store.basename(store.plain(place).rstrip("/"))
        for place, each in zip(places, found, strict=True)
        if any(each is kept for kept in sessions)
    ]
    names = [
        file.host if hosts[file.host] == 1 else f"{owner}/{file.host}"
        for owner, session in zip(owners, sessions, strict=True)
        for file in session.files
    ]
    renamed = (replace(file, host=name) for name, file in zip(unique_names(names), files, strict=True))
    problems = [*dict.fromkeys(problem for session in sessions for problem in session.problems), *problems]
    runs = list(dict.fromkeys(session.run for session in sessions))
    return Session(
        run=join_names(runs, limit=_MOST_RUNS),
        path=sessions[0].path if len(sessions) < len(found) else os.fspath(places[0]),
        files=tuple(renamed),
        problems=tuple(problems),
        joined=tuple(session.path for session in sessions),
    )


def _of_one_time(sessions: list[Session]) -> tuple[list[Session], list[Problem]]:
    """The sessions that may be of one job: those that were not written long before the newest; and what is left out."""
    if len(sessions) == 1:
        return sessions, []
    written = [written_ns_of(session) for session in sessions]
    earliest = max((moment for moment in written if moment is not None), default=0) - MAX_SPREAD_MINUTES * 60 * 10**9
    is_old = [moment is not None and moment < earliest for moment in written]
    left = [session.run for session, old in zip(sessions, is_old, strict=True) if old]
    if not left:
        return sessions, []
    reason = f"left out, as written long before the rest, while hosts of a job record at one time: {join_names(left)}"
    hint = "compare two runs with stepscope compare"
    return list(compress(sessions, (not old for old in is_old))), [Problem("other-time", reason, hint=hint)]


def written_ns_of(session: Session, or_changed: bool = False) -> int | None:
    """When the last of a session's files was written, in ns since the epoch, as they or their names say.

    Args:
        or_changed: where they do not, take the time of their last change, which copying a file may move.

    Returns:
        None if one of them does not say it.
    """
    moments = [_file_written_ns(file, or_changed) for file in session.files]
    known = [moment for moment in moments if moment is not None]
    return max(known) if len(known) == len(moments) else None


def _file_written_ns(file: HostFile, or_changed: bool) -> int | None:
    number, digits = file.format.name_parts(store.basename(file.path)).stamp
    if digits and len(digits) in NS_PER_UNIT_BY_DIGITS:
        return number * NS_PER_UNIT_BY_DIGITS[len(digits)]
    span = file.format.recorded_span(file.path)
    return span[1] if span else store.identity(file.path).modified_ns if or_changed else None


def _expand_pattern(path: str | os.PathLike[str]) -> list[str]:
    """The paths that a pattern matches, in natural order; a path that is no pattern, or exists, is itself."""
    _require_path(path)
    text = os.fspath(path)
    if not any(sign in text for sign in "*?[") or store.is_remote(text) or os.path.lexists(store.plain(text)):
        return [text]
    found = sorted(glob(store.plain(text)), key=natural_key)  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not found:
        raise NotFoundError("no file or folder matches this pattern", path=text, hint="check it with ls")
    return found


def pick_host(session: Session, host: str) -> HostFile:
    """The file of a host.  Raises UsageError, listing the hosts, if the session has no such host."""
    for file in session.files:
        if file.host == host:
            return file
    reason = f"there is no host named {host} in run {session.run}"
    hint = f"the hosts are: {join_names(session.hosts)}"
    raise UsageError(reason, code="unknown-host", path=session.path, hint=hint)


# ---- from a folder's files to sessions -------------------------------------------------------------------------------


def _folder_candidates(root: str, folder: store.Folder, problems: list[Problem]) -> list[Candidate]:
    """The sessions whose files lie in one folder.  Files that are left out are added to `problems`."""
    claimed = [(entry, fmt) for entry in folder.files if (fmt := format_of(entry.name)) and fmt.in_folders]
    found = _drop_unfinished(drop_packed_copies(_describe_files(claimed, problems)))
    whole = [file for file in found if not file.format.has_spans]
    parts = [file for file in found if file.format.has_spans]
    if whole:
        parts = _drop_copies(whole, parts, problems)
    spans = _group_spans(parts)
    groups = [*spans, whole] if whole else spans
    run = _run_name(root, folder.path)
    moment, rest = written_moment(store.basename(folder.path), found)
    return [
        Candidate(
            order=Order(moment, rest, run, number),
            run=run if files is whole or len(groups) == 1 else f"{run}/span_{number}",
            path=folder.path,
            files=files,
            is_watched=any(entry.name == WATCH_MARKER for entry in folder.files),
        )
        for number, files in enumerate(groups, start=1)
    ]


def _find_by_content(
    root: str, walk: store.Walk, problems: list[Problem], whatever_name: bool = False
) -> list[Candidate]:
    from stepscope.formats.by_content import find_by_content

    return find_by_content(root, walk.folders, problems, whatever_name)


def _pass_over(found: list[Candidate], problems: list[Problem]) -> list[Candidate]:
    """Leaves out files that are profiles by content alone and lie beside profiles by name: these say what they are.
    All but copies of them are named."""
    beside: dict[str, set[str]] = {}
    for each in found:
        if not each.is_by_content:
            beside.setdefault(each.path, set()).update(file.worker for file in each.files)
    kept = []
    reason = "passed over: its content is a profile but its name is not that of one, and other files have such names"
    hint = "give the path of this file to open it, or rename it to NAME.pt.trace.json[.gz]"
    for each in found:
        hosts = beside.get(each.path)
        if not each.is_by_content or hosts is None:
            kept.append(each)
            continue
        own = [file for file in each.files if file.format.classify_companion(file.name, hosts) is not Companion.COPY]
        timed = [file for file in own if not file.format.holds_memory_only]
        problems += [Problem("passed-over", reason, path=file.path, hint=hint) for file in timed[:MAX_BESIDE]]
        problems += _name_memory(file for file in own if file.format.holds_memory_only)
    return kept


def _prefer_time(found: list[Candidate], problems: list[Problem]) -> list[Candidate]:
    """Leaves out what fills a memory, which one tool alone reads, where there are recordings of time.  It is named."""
    timed = [each for each in found if not all(file.format.holds_memory_only for file in each.files)]
    if not timed:
        return found
    problems += _name_memory(file for each in found if each not in timed for file in each.files)
    return timed


def _name_memory(files: Iterable[Found]) -> Iterator[Problem]:
    reason = "left out: it holds what fills a memory and no time, and there are recordings of time"
    hint = "give the path of this file to open it"
    return (Problem(BESIDE, reason, path=file.path, hint=hint) for file in islice(files, MAX_BESIDE))


def _set_captures_aside(found: list[Candidate], problems: list[Problem]) -> list[Candidate]:
    """Gives traces that servers write while they capture graphs, a file a batch size, to the sessions beside or above
    them.  Those that are alone are sessions; others are left out."""
    kept: list[Candidate] = []
    captures: dict[str, list[Found]] = {}
    for each in found:
        own = store.basename(each.path.rstrip("/")) in GRAPH_CAPTURES
        aside = [own or bool(_GRAPH_CAPTURE.match(file.name)) for file in each.files]
        files = [file for file, captured in zip(each.files, aside, strict=True) if not captured]
        captures.setdefault(each.path, []).extend(compress(each.files, aside))
        kept += [each._replace(files=files)] if files else []
    if not kept:
        return found
    folders = {each.path.rstrip("/") for each in kept}
    for path, files in captures.items():
        home = path.rstrip("/")
        if files and home not in folders and home.rpartition("/")[0] not in folders:
            reason = f"left out: {counted(len(files), 'trace')} of graphs that are captured, not of work that ran"
            problems.append(Problem("left-out", reason, path=path, hint="give the path of this folder to open them"))
    return [each._replace(captures=tuple(_captures_near(each.path, captures))) for each in kept]


def _captures_near(path: str, captures: Mapping[str, list[Found]]) -> Iterator[Found]:
    """The captures in a folder and in the folders in it."""
    for folder, files in captures.items():
        if path.rstrip("/") in (folder.rstrip("/"), folder.rstrip("/").rpartition("/")[0]):
            yield from files


def _describe_files(claimed: Iterable[tuple[store.Entry, Format]], problems: list[Problem]) -> list[Found]:
    found = []
    for entry, fmt in claimed:
        try:
            found.append(describe_file(entry, fmt))
        except InputError as error:
            problems.append(error.problem)
    return found


def _drop_unfinished(found: list[Found]) -> list[Found]:
    """Leaves out what a capture has flushed if its final profile exists: a job may end before it removes the former.

    On a file system without links, the profile is an empty file at first; then the profile is left out instead.
    """
    size_of = {file.path: file.identity.size for file in found}
    spare = set()
    for file in found:
        profile = file.path.removesuffix(file.format.unfinished_ending)
        if profile != file.path:
            is_finished = size_of.get(profile, 0) != 0
            spare.add(file.path if is_finished else profile)
    return [file for file in found if file.path not in spare]


def _drop_copies(whole: list[Found], parts: list[Found], problems: list[Problem]) -> list[Found]:
    """Leaves out copies and exports of the profiles `whole` in the same folder; exports are added to `problems`."""
    hosts = {file.worker for file in whole}
    kept = []
    for file in parts:
        meant = file.format.classify_companion(file.name, hosts)
        if meant is Companion.OWN:
            kept.append(file)
        elif meant is Companion.EXPORT:
            reason = f"left out: it lies next to {whole[0].format.noun} and is probably an export of it"
            hint = "give the path of this file to open it"
            problems.append(Problem(code="left-out", reason=reason, path=file.path, hint=hint))
    return kept


def _group_spans(parts: list[Found]) -> list[list[Found]]:
    """Groups the n-th file of each worker, for n = 1, 2, ..."""
    workers: dict[str, list[Found]] = {}
    for file in sorted(parts, key=lambda file: (file.stamp, file.path)):
        workers.setdefault(file.worker, []).append(file)
    if all(file.stamp == NO_STAMP for file in parts):
        # One name with and without ".pt": two files of one span, not two spans.
        return [parts] if parts else []
    longest = max(map(len, workers.values()))
    return [[files[n] for files in workers.values() if n < len(files)] for n in range(longest)]


# ---- names -----------------------------------------------------------------------------------------------------------


def _run_name(root: str, folder: str) -> str:
    """The display name of a folder's run, relative to the path that was searched."""
    above, below = len(store.parts(root)), store.parts(folder)
    if below[-3:-1] == ("plugins", "profile"):
        return printable("/".join((*below[above:-3], below[-1])))
    archive = folder.partition("::")[2].rpartition("/")[2]
    return printable("/".join(below[above:] or below[-1:] or (archive or folder,)))


def _name_sessions(found: list[Candidate], problems: list[Problem]) -> tuple[Session, ...]:
    runs = unique_names([candidate.run for candidate in found])
    return tuple(
        Session(
            run,
            candidate.path,
            _host_files(candidate.files, candidate.captures),
            (*problems, *candidate.problems, *_check_spread(candidate)),
            len(runs),
            candidate.joined,
        )
        for run, candidate in zip(runs, found, strict=True)
    )


def _host_files(files: list[Found], captures: Sequence[Found] = ()) -> tuple[HostFile, ...]:
    ordered = sorted(files, key=lambda file: (natural_key(file.worker), file.path))
    hosts = unique_names([printable(file.worker) or LOCAL_HOST for file in ordered])
    return tuple(
        HostFile(host, file.path, file.format, file.identity.size, _captures_of(file, host, captures))
        for host, file in zip(hosts, ordered, strict=True)
    )


def _captures_of(file: Found, host: str, captures: Iterable[Found]) -> tuple[HostFile, ...]:
    """The captures of a host's graphs: those of its rank, or all where a name says none."""
    rank = _RANK.search(file.name)
    own = (each for each in captures if not rank or not (its := _RANK.search(each.name)) or its[1] == rank[1])
    return tuple(HostFile(host, each.path, each.format, each.identity.size) for each in own)


def _check_spread(candidate: Candidate) -> list[Problem]:
    """A warning if torch.profiler's stamps are too far apart for one job.

    The worker's name holds the process id, so a second run into the same folder looks like a second worker.
    """
    stamped = [written_ns(file) or 0 for file in candidate.files if len(file.stamp[1]) in NS_PER_UNIT_BY_DIGITS]
    minutes = (max(stamped) - min(stamped)) // (60 * 10**9) if stamped else 0
    if minutes < MAX_SPREAD_MINUTES:
        return []
    reason = f"the traces of these {len(candidate.files)} workers were written over {minutes:,} minutes"
    hint = "if they belong to different jobs, give one file, or choose with --host"
    return [Problem(code="workers-far-apart", reason=reason, path=candidate.path, hint=hint)]


# ---- content ---------------------------------------------------------------------------------------------------------


def _session_of_file(path: str) -> Session:
    name = store.basename(path)
    claimed = format_of(name)
    fmt = claimed if claimed and claimed.in_folders else _format_by_content(path, name)
    file = describe_file(store.Entry(name, path, is_folder=False), fmt)
    folder = store.parent(path) or path
    is_in_layout = store.parts(folder)[-3:-1] == ("plugins", "profile")
    run = store.basename(folder) if is_in_layout else name
    return Session(printable(run), folder, _host_files([file]))


def _format_by_content(path: str, name: str) -> Format:
    from stepscope.formats.sniffing import format_by_content

    return format_by_content(path, name)
