"""The one finder of profiles: from whatever path a user has, to the sessions and the files of their hosts.

    LOGDIR/plugins/profile/RUN/HOST.xplane.pb           TensorFlow, JAX, PyTorch/XLA: session RUN, one file a host
    LOGDIR/train/plugins/profile/RUN/HOST.xplane.pb     the same below a TensorBoard run: session train/RUN
    LOGDIR/plugins/profile/RUN/HOST.trace.json.gz       JAX's copy of what is in the xplane file: left out
    LOGDIR/plugins/profile/RUN/HOST.xplane.pb.partial   what a capture had flushed: left out beside HOST.xplane.pb
    LOGDIR/plugins/profile/RUN/HOST.pt.trace.json.gz    what Stepscope made HOST.xplane.pb of: left out beside that
    FOLDER/WORKER.STAMP.pt.trace.json.gz                torch.profiler: one host a worker; where a worker has several
                                                        stamps, the n-th of each worker make session FOLDER/span_n
    FOLDER/any profile                                  session FOLDER
    FOLDER/any.json                                     where no name tells a profile and the content does: session
                                                        FOLDER/any.json

**Newest** is decided by the time in the run's name (`2026_11_21_03_53_27`, as TensorFlow and JAX name runs, or the Unix
time that torch.profiler puts into file names), because copying a logdir changes the times of its files.  A run named
otherwise counts as written when its newest file was.  Spans of one folder are in the order of their numbers.
"""

from __future__ import annotations

import os
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePath
from typing import NamedTuple

from stepscope.errors import InputError, NotFoundError, Problem, UnreadableError, UsageError, counted
from stepscope.formats import store
from stepscope.formats.base import FORMATS, Format, format_of, require_format

LOCAL_HOST = "localhost"
"""The name of a host whose file does not tell one."""

_GZIP_MAGIC = b"\x1f\x8b"
SNIFF_BYTES = 64 * 1024
MAX_SNIFFED_FILES = 64
_MISTYPED = 0.7  # of two names, how alike they are from which on one may be meant by the other
MAX_SPREAD_MINUTES = 10
"""The ranks of a job write the same span within this; exporting a large trace takes minutes."""


@dataclass(frozen=True, slots=True)
class HostFile:
    """The file that holds one host's trace.

    Attributes:
        host: name, unique in its session.
        path: path or URL.
        format: how to read it.
        size: bytes; None if the store does not say.
    """

    host: str
    path: str
    format: Format
    size: int | None


@dataclass(frozen=True, slots=True)
class Session:
    """One capture, of one or many hosts.

    Attributes:
        run: display name, unique among the sessions found with it: `<tensorboard run>/<run>`, or `<run>`.
        path: the folder that holds the files.
        files: at least one, in the order of the hosts' names.
        problems: what the search could not look into and what was left out, to be told as warnings.
    """

    run: str
    path: str
    files: tuple[HostFile, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts' names, in the order of the files."""
        return tuple(file.host for file in self.files)


# ---- the finder ------------------------------------------------------------------------------------------------------


def find_sessions(path: str | os.PathLike[str]) -> tuple[Session, ...]:
    """All sessions at or below a path, the newest first.

    Args:
        path: a profile file, a session's folder, a logdir or any parent of these; local, or a URL that fsspec knows.

    Raises:
        NotFoundError: nothing is there, or no profile; says what was looked for, where, and what is there instead.
        UnreadableError: `path` is a file that is no profile.
        AccessError: it may not be read.
        UsageError: the path is empty.
    """
    if not os.fspath(path):
        raise UsageError("the path is empty", hint="give a file or a folder; a variable of the shell may not be set")
    root = store.plain(path)
    kind = store.kind(root)
    if kind is None:
        raise _missing(root)
    if kind != "folder":
        return (_session_of_file(root),)
    walk = store.walk(root)
    problems = list(walk.problems)
    found = [candidate for folder in walk.folders for candidate in _candidates(root, folder, problems)]
    found = found or _sniffed_candidates(root, walk, problems)
    if not found:
        raise _no_profile(root, walk, problems)
    return _named(sorted(found, key=lambda candidate: candidate.order, reverse=True), problems)


def find_session(path: str | os.PathLike[str], run: str | None = None) -> Session:
    """The newest session at or below a path, or the one that is named.

    Args:
        path: as for `find_sessions`.
        run: a session's `run`, or the last part of it where only one session has that.

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
    hint = f"the runs are: {_listing([session.run for session in matching or sessions])}"
    raise UsageError(reason, code="unknown-run", path=os.fspath(path), hint=hint)


def pick_host(session: Session, host: str) -> HostFile:
    """The file of a host.  Raises UsageError, listing the hosts, if the session has no such host."""
    for file in session.files:
        if file.host == host:
            return file
    reason = f"there is no host named {host} in run {session.run}"
    hint = f"the hosts are: {_listing(session.hosts)}"
    raise UsageError(reason, code="unknown-host", path=session.path, hint=hint)


def sniff(prefix: bytes) -> Format | None:
    """The format of a file by the first bytes of its content, whatever its name; None if it is no profile's.

    A gzip file is judged by what is compressed in it.

    Args:
        prefix: the first kilobyte of the file, or more.
    """
    content = _inflated(prefix)
    if content.lstrip()[:1] in (b"{", b"["):
        return _format_named("kineto")
    if content.startswith(b"\x80") and (b"device_traces" in content or b"segments" in content[:_PICKLE_HEAD]):
        return _format_named("torch-memory")
    return _format_named("xspace") if _begins_as_xspace(content) else None


# ---- a folder's files, as sessions -----------------------------------------------------------------------------------


class _Found(NamedTuple):
    """A file that holds a profile, and what its name tells.

    Attributes:
        worker: the host, or the empty string.
        stamp: the number that torch.profiler puts behind it, as a number and as it stands there; (-1, "") if none.
        stem: the name without `.gz`.
    """

    path: str
    format: Format
    identity: store.Identity
    worker: str
    stamp: tuple[int, str]
    stem: str


class _Order(NamedTuple):
    """Where a session stands among all: `moment` is local time as digits YYYYmmddHHMMSS, the rest breaks ties."""

    moment: str
    rest: str
    run: str
    span: int


class _Candidate(NamedTuple):
    """A session that has no final name yet."""

    order: _Order
    run: str
    path: str
    files: list[_Found]


_TORCH_NAME = re.compile(r"(?P<worker>.*?)(?:\.(?P<stamp>\d+))?\.pt\.trace\.json")
_NOT_SPANNED: tuple[int, str] = (-1, "")
_SPOOL_ENDING = ".partial"


def _candidates(root: str, folder: store.Folder, problems: list[Problem]) -> list[_Candidate]:
    """The sessions whose files lie in one folder; adds to `problems` what had to be left out."""
    claimed = [(entry, fmt) for entry in folder.files if (fmt := format_of(entry.name)) and fmt.in_folders]
    found = _without_spools(_without_packed_copies(_described(claimed, problems)))
    spaces = [file for file in found if file.format.name != "kineto"]
    traces = [file for file in found if file.format.name == "kineto"]
    if spaces:
        traces = _without_derived(spaces, traces, problems)
    spans = _spans(traces)
    groups = [*spans, spaces] if spaces else spans
    run = _run_of(root, folder.path)
    moment, rest = _moment(store.basename(folder.path), found)
    return [
        _Candidate(
            order=_Order(moment, rest, run, number),
            run=run if files is spaces or len(groups) == 1 else f"{run}/span_{number}",
            path=folder.path,
            files=files,
        )
        for number, files in enumerate(groups, start=1)
    ]


def _described(claimed: Iterable[tuple[store.Entry, Format]], problems: list[Problem]) -> list[_Found]:
    found = []
    for entry, fmt in claimed:
        try:
            found.append(_described_file(entry, fmt))
        except InputError as error:
            problems.append(error.problem)
    return found


def _described_file(entry: store.Entry, fmt: Format) -> _Found:
    """Raises NotFoundError for a link that leads nowhere, AccessError."""
    identity = entry.identity or store.identity(entry.path)
    stem = entry.name.removesuffix(".gz")
    torch = _TORCH_NAME.fullmatch(stem) if fmt.name == "kineto" else None
    if torch:
        digits = torch["stamp"]
        stamp = (int(digits), digits) if digits else _NOT_SPANNED
        return _Found(entry.path, fmt, identity, torch["worker"], stamp, stem)
    if not fmt.claims(entry.name):
        worker = PurePath(stem).stem
    elif fmt.name == "kineto":
        # A number before ".trace.json" is part of the host's name, as in 10.0.0.2.trace.json.gz: only
        # torch.profiler writes stamps.
        worker = stem.removesuffix(".trace.json")
    else:
        worker = fmt.host_of(entry.name)
    return _Found(entry.path, fmt, identity, worker, _NOT_SPANNED, stem)


def _without_packed_copies(found: list[_Found]) -> list[_Found]:
    """Leaves out `name.gz` beside `name`, as `gunzip -k` leaves it."""
    unpacked = {file.path for file in found}
    return [file for file in found if not (file.path.endswith(".gz") and file.path.removesuffix(".gz") in unpacked)]


def _without_spools(found: list[_Found]) -> list[_Found]:
    """Leaves out what a capture had flushed beside the profile that was made of it: the job may end between the two.

    Where the file system has no links, an empty file holds the profile's name at first; then it is left out instead.
    """
    size_of = {file.path: file.identity.size for file in found}
    spare = set()
    for path in size_of:
        profile = path.removesuffix(_SPOOL_ENDING)
        if profile != path:
            is_finished = size_of.get(profile, 0) != 0
            spare.add(path if is_finished else profile)
    return [file for file in found if file.path not in spare]


def _without_derived(spaces: list[_Found], traces: list[_Found], problems: list[Problem]) -> list[_Found]:
    """Leaves out the JSON traces that were made from the xplane files beside them.

    JAX names its copy as the host, and older releases `remote`.  Stepscope keeps what PyTorch wrote under the name of
    the xplane file that it made of it.  Any other is left out as well, since exports land here, but that is told.  What
    torch.profiler writes is data of its own.
    """
    known = {file.worker for file in spaces} | {"remote"}
    others = [file for file in traces if file.stem.removesuffix(".pt.trace.json") not in known]
    kept = [file for file in others if _TORCH_NAME.fullmatch(file.stem)]
    for file in others:
        if file not in kept and file.worker not in known:
            reason = "left out, since it lies beside xplane files and is taken for an export of them"
            hint = "give this file itself to look at it"
            problems.append(Problem(code="left-out", reason=reason, path=file.path, hint=hint))
    return kept


def _spans(traces: list[_Found]) -> list[list[_Found]]:
    """The n-th file of each worker together, for n = 1, 2, ..."""
    workers: dict[str, list[_Found]] = {}
    for file in sorted(traces, key=lambda file: (file.stamp, file.path)):
        workers.setdefault(file.worker, []).append(file)
    if all(file.stamp == _NOT_SPANNED for file in traces):
        # One name with and without ".pt": two files of one moment, not two moments.
        return [traces] if traces else []
    longest = max(map(len, workers.values()))
    return [[files[n] for files in workers.values() if n < len(files)] for n in range(longest)]


# ---- names -----------------------------------------------------------------------------------------------------------


def _run_of(root: str, folder: str) -> str:
    """The display name of a folder's run, seen from the path that was searched."""
    above, below = len(store.parts(root)), store.parts(folder)
    if below[-3:-1] == ("plugins", "profile"):
        return _printable("/".join((*below[above:-3], below[-1])))
    return _printable("/".join(below[above:] or below[-1:] or (folder,)))


def _named(found: list[_Candidate], problems: list[Problem]) -> tuple[Session, ...]:
    runs = _unique([candidate.run for candidate in found])
    return tuple(
        Session(run, candidate.path, _host_files(candidate.files), (*problems, *_spread(candidate)))
        for run, candidate in zip(runs, found, strict=True)
    )


def _host_files(files: list[_Found]) -> tuple[HostFile, ...]:
    ordered = sorted(files, key=lambda file: (_natural(file.worker), file.path))
    hosts = _unique([_printable(file.worker) or LOCAL_HOST for file in ordered])
    return tuple(
        HostFile(host, file.path, file.format, file.identity.size) for host, file in zip(hosts, ordered, strict=True)
    )


def _unique(names: list[str]) -> list[str]:
    """The names, with `_2`, `_3`, ... behind those that stood before; no other name is changed."""
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        chosen, number = name, 2
        while chosen in (seen if chosen == name else taken):
            chosen, number = f"{name}_{number}", number + 1
        taken.add(chosen)
        seen.add(chosen)
        result.append(chosen)
    return result


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key by which rank2 comes before rank10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name))


def _printable(name: str) -> str:
    """The name with `?` for bytes that are no text and for characters that would steer a terminal."""
    text = name.encode("utf-8", "replace").decode("utf-8")
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def _listing(names: Iterable[str], limit: int = 20) -> str:
    shown = list(names)
    more = f", and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def _spread(candidate: _Candidate) -> list[Problem]:
    """Says so if torch.profiler's stamps are too far apart for one job.

    The worker's name holds the process id, so a second run into the same folder looks like a second worker.
    """
    stamped = [_written_ns(file) or 0 for file in candidate.files if len(file.stamp[1]) in _NS_PER_UNIT_BY_DIGITS]
    minutes = (max(stamped) - min(stamped)) // (60 * 10**9) if stamped else 0
    if minutes < MAX_SPREAD_MINUTES:
        return []
    reason = f"the traces of these {len(candidate.files)} workers were written over {minutes:,} minutes"
    hint = "if they are of different jobs, give one file, or choose with --host"
    return [Problem(code="workers-far-apart", reason=reason, path=candidate.path, hint=hint)]


# ---- time ------------------------------------------------------------------------------------------------------------

_TIMED_NAME = re.compile(
    r"(20\d\d)[-_.]?(0\d|1[0-2])[-_.]?([0-2]\d|3[01])[-_.T ]?([01]\d|2[0-3])[-_.:]?([0-5]\d)[-_.:]?([0-5]\d)(.*)",
    re.DOTALL,
)
_NS_PER_UNIT_BY_DIGITS = {10: 10**9, 13: 10**6, 16: 10**3, 19: 1}


def _moment(name: str, files: list[_Found]) -> tuple[str, str]:
    """When a folder's files were written: local time as 14 digits, and what orders equal ones.

    A run's name holds local time, so every other source is brought to that form; then the order of timed names is the
    order of their letters.
    """
    timed = _TIMED_NAME.fullmatch(name)
    if timed:
        *digits, rest = timed.groups()
        return "".join(digits), rest
    known = [moment for file in files if (moment := _written_ns(file)) is not None]
    return _local_digits(max(known)) if known else ("", "")


def _written_ns(file: _Found) -> int | None:
    """Nanoseconds since the epoch, by the stamp if that is a Unix time in s, ms, us or ns; None if unknown."""
    number, digits = file.stamp
    unit = _NS_PER_UNIT_BY_DIGITS.get(len(digits))
    return number * unit if unit else file.identity.modified_ns


def _local_digits(moment_ns: int) -> tuple[str, str]:
    seconds, rest = divmod(moment_ns, 10**9)
    try:
        return time.strftime("%Y%m%d%H%M%S", time.localtime(seconds)), f"{rest:09}"
    except (OverflowError, ValueError, OSError):
        # A time that no calendar holds, from a broken clock.
        return "", ""


# ---- content ---------------------------------------------------------------------------------------------------------

_PICKLE_HEAD = 256  # the first key of a memory snapshot stands here
_XPLANE_TAGS = frozenset({0x08, 0x12, 0x1A, 0x22, 0x2A, 0x32})
_XSPACE_TAGS = frozenset({0x0A, 0x12, 0x1A, 0x22})


def _session_of_file(path: str) -> Session:
    name = store.basename(path)
    fmt = format_of(name) or _format_by_content(path, name)
    file = _described_file(store.Entry(name, path, is_folder=False), fmt)
    folder = store.parent(path) or path
    is_in_layout = store.parts(folder)[-3:-1] == ("plugins", "profile")
    run = store.basename(folder) if is_in_layout else name
    return Session(_printable(run), folder, _host_files([file]))


def _format_by_content(path: str, name: str) -> Format:
    """Raises UnreadableError for a file that is no profile."""
    prefix = store.read_prefix(path, SNIFF_BYTES)
    if not prefix:
        raise UnreadableError("the file is empty", code="empty", path=path, hint=_CAPTURE_HINT)
    fmt = sniff(prefix)
    if fmt and fmt.name == "xspace" and prefix.startswith(_GZIP_MAGIC):
        hint = "unpack it with gunzip and give the result"
        raise UnreadableError("this is an XSpace compressed with gzip", code="unknown-format", path=path, hint=hint)
    label = _known_label(name)
    if label and not (fmt and fmt.name == "xspace"):
        raise UnreadableError(f"this is no profile but {label}", code="unknown-format", path=path, hint=_hint(path))
    return fmt or require_format(name, path)


def _sniffed_candidates(root: str, walk: store.Walk, problems: list[Problem]) -> list[_Candidate]:
    """JSON files that are traces by their content, each a session: nothing tells whether they belong together."""
    files = (entry for folder in walk.folders for entry in folder.files)
    named = [entry for entry in files if entry.name.removesuffix(".gz").endswith(".json")]
    traces = [entry for entry in named[:MAX_SNIFFED_FILES] if _holds_trace(entry.path, problems)]
    found = _without_packed_copies(_described(((entry, _format_named("kineto")) for entry in traces), problems))
    return [_sniffed_candidate(root, file) for file in found]


def _sniffed_candidate(root: str, file: _Found) -> _Candidate:
    run = _printable("/".join(store.parts(file.path)[len(store.parts(root)) :]))
    moment, rest = _moment("", [file])
    return _Candidate(_Order(moment, rest, run, 1), run, store.parent(file.path) or root, [file])


def _holds_trace(path: str, problems: list[Problem]) -> bool:
    """True for JSON that is a trace and not any other; the keys and first events stand at the beginning."""
    try:
        content = _inflated(store.read_prefix(path, SNIFF_BYTES)).lstrip()
    except InputError as error:
        problems.append(error.problem)
        return False
    if content.startswith(b"["):
        return b'"ph"' in content[:4096]
    return content.startswith(b"{") and (b'"traceEvents"' in content or b'"deviceProperties"' in content)


def _inflated(prefix: bytes) -> bytes:
    """The beginning of the content, of a bounded size, if the bytes are gzip's; else as they are, without a BOM."""
    if not prefix.startswith(_GZIP_MAGIC):
        return prefix.removeprefix(b"\xef\xbb\xbf")
    try:
        return zlib.decompressobj(wbits=31).decompress(prefix, SNIFF_BYTES)
    except zlib.error:
        return b""


def _begins_as_xspace(content: bytes) -> bool:
    """True if the first field can be a plane of an XSpace: field 1, of a length, beginning with a field of XPlane.

    The second tag tells it from other messages that begin with a nested message, such as graphs and HLO modules.
    """
    if not content.startswith(b"\x0a"):
        return False
    length, position = _varint(content, 1)
    if length is None or length >= 1 << 40 or position >= len(content):
        return False
    if length == 0:
        return content[position] in _XSPACE_TAGS
    if content[position] not in _XPLANE_TAGS:
        return False
    return content[position] != 0x12 or _is_short_text(content, position + 1)


def _is_short_text(content: bytes, position: int) -> bool:
    """True if a plane's name, as far as it is there, can stand at a position."""
    length, start = _varint(content, position)
    if length is None or length > 4096:
        return False
    return content[start : start + length].decode("utf-8", "replace").isprintable()


def _varint(content: bytes, position: int) -> tuple[int | None, int]:
    """The number at a position and the position behind it; None if there is none."""
    value = 0
    for count, byte in enumerate(content[position : position + 10]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value, position + count + 1
    return None, position


def _format_named(name: str) -> Format:
    return next(fmt for fmt in FORMATS if fmt.name == name)


# ---- when there is nothing -------------------------------------------------------------------------------------------

_CAPTURE_HINT = (
    "record a profile with `stepscope run SCRIPT`, stepscope.Profile(LOGDIR), tf.profiler.experimental.start(LOGDIR), "
    "jax.profiler.trace(LOGDIR) or torch.profiler's tensorboard_trace_handler(LOGDIR)"
)

_KNOWN_LABELS = (
    (re.compile(r".*tfevents.*"), "TensorBoard events (events.out.tfevents*)"),
    (re.compile(r"(.*\.)?xplane\.riegeli"), "an XSpace in chunks (*.xplane.riegeli), which is not read yet"),
    (re.compile(r"(.*\.)?xplane\.pb\.\w+"), "a packed or partial XSpace (*.xplane.pb.*)"),
    (re.compile(r"(.*\.)?hlo_proto\.pb"), "an HLO module (*.hlo_proto.pb)"),
    (
        re.compile(
            r".*\.(op_stats(_v2)?|dcn_collective_stats|smart_suggestion)\.pb|.*\.SSTABLE|cache_version\.txt|\.cached_tools\.json"
        ),
        "a cache that XProf made of a profile",
    ),
)


def _missing(root: str) -> NotFoundError:
    return NotFoundError("there is no such file or folder", path=root, hint=_hint(root))


def _no_profile(root: str, walk: store.Walk, problems: list[Problem]) -> NotFoundError:
    depth = max(folder.depth for folder in walk.folders)
    where = f"{counted(len(walk.folders), 'folder')} with {counted(walk.file_count, 'file')}"
    where += f", {counted(depth, 'level')} deep" if depth else ""
    wanted = " or ".join(fmt.summary for fmt in FORMATS if fmt.in_folders)
    census = _census(entry.name for folder in walk.folders for entry in folder.files)
    instead = f"; there are instead: {census}" if census else ""
    reason = f"no profile in {where}; looked for {wanted}{instead}"
    told = "; ".join(f"{problem.path}: {problem.reason}" for problem in problems[:3])
    more = f"; and {len(problems) - 3} more problems" if len(problems) > 3 else ""
    return NotFoundError(reason, path=root, lost=told + more or None, hint=_hint(root))


def _census(names: Iterable[str]) -> str:
    """What kinds of files there are, the most frequent first."""
    counts = Counter(_label(name) for name in names)
    return _listing((f"{count:,} {label}" for label, count in counts.most_common()), limit=6)


def _label(name: str) -> str:
    known = _known_label(name)
    if known:
        return known.removeprefix("an ").removeprefix("a ")
    ending = PurePath(name.removesuffix(".gz")).suffix
    return _printable(f"*{ending}" if ending else "without an ending")


def _known_label(name: str) -> str | None:
    return next((label for pattern, label in _KNOWN_LABELS if pattern.fullmatch(name)), None)


def _hint(path: str) -> str:
    near = sorted(_nearby(path), key=lambda folder: -_likeness(path, folder))
    if not near:
        return _CAPTURE_HINT
    if len(near) == 1:
        return f"there are profiles in {near[0]}: give that path"
    return f"there are profiles in {near[0]} and {counted(len(near) - 1, 'more folder')}: give one of these paths"


def _likeness(path: str, other: str) -> float:
    """How much the last name of a path looks like a mistyped one of another; 0 if it does not."""
    ratio = SequenceMatcher(a=path.rstrip("/").rpartition("/")[2], b=other.rpartition("/")[2]).ratio()
    return ratio if ratio >= _MISTYPED else 0.0


def _nearby(path: str) -> list[str]:
    """Folders with profiles, at most two levels above a path and a few below those, the shallowest first."""
    folder: str | None = path
    for _ in range(2):
        folder = folder and store.parent(folder)
        # Not from the root of a disk or a bucket: all the world is below it.
        if folder is None or store.parent(folder) is None:
            break
        try:
            walk = store.walk(folder, max_depth=5, max_entries=3000, max_folders=200)
        except InputError:
            continue
        found = [listed.path for listed in walk.folders if any(_is_profile(entry.name) for entry in listed.files)]
        if found:
            return list(dict.fromkeys(map(_logdir_of, found)))
    return []


def _is_profile(name: str) -> bool:
    fmt = format_of(name)
    return fmt is not None and fmt.in_folders


def _logdir_of(folder: str) -> str:
    """The folder that holds `plugins`, for a run in TensorBoard's layout."""
    if store.parts(folder)[-3:-1] != ("plugins", "profile"):
        return folder
    for _ in range(3):
        folder = store.parent(folder) or folder
    return folder
