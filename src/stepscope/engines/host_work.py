"""The work on one host: read its file, compute its part of a report, and keep that in the cache."""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stepscope.analysis.registry import Tool, tool_named
from stepscope.cache import Cache, cache_key
from stepscope.engines.budget import memory_of
from stepscope.errors import InputError, LeftOutError, NotFoundError, Problem, UnreadableError
from stepscope.formats import progress as reading
from stepscope.formats import store
from stepscope.formats.leaving_out import LEFT_OUT
from stepscope.formats.threads import usable_cores
from stepscope.kernels.memory import ArrayPool
from stepscope.meanwhile import collecting_later, computing, importing
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.formats.session import HostFile
    from stepscope.model import HostTrace
    from stepscope.shelf import TraceShelf

Progress = Callable[[str], None]

WORTH_KEEPING = 200_000
"""From this many events on, reading the derived columns of a trace from the cache is faster than computing them."""

CHANGED = "changed"
"""The code of the problem that a file is not the one any more that the work began with."""

_FOREST = "forest"
_PROCESSES = "processes"

# Larger files are decoded while they are read and are never in memory as a whole.
_LARGE_FILE_BYTES = 8 << 20

_WORTH_A_THREAD = 100_000  # events

_LEAN = "lean"

_TRUST = "trust"  # the tool whose finding is a line of every report
_WRITER = "msgspec"


@dataclass(frozen=True)
class KnownFile:
    """What is known of a host's file before it is opened: its identity, and the cache key of what is derived from it.

    A worker gets both from the process that listed the folder.  It need not ask the store again, and the key holds on
    every machine, although the times of the installed code differ.
    """

    identity: store.Identity
    key: str | None


class HostWork:
    """Reads hosts and computes their partials.  Every engine uses it, in whichever process.

    Args:
        cache: where partials and derived columns are kept.
        shelf: where decoded traces are kept.
        progress: called with a short sentence when a longer piece of work starts.
        known: what is known of hosts' files, by host.
        memory_bytes: what this process may take; None for as much as there is.

    Attributes:
        is_lean: traces are read without the stats that most tools do not need; what asks for one reads the file again.
    """

    def __init__(
        self,
        cache: Cache,
        shelf: TraceShelf,
        progress: Progress,
        known: Mapping[str, KnownFile] | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        self.cache = cache
        self.shelf = shelf
        self.events_read: dict[str, int] = {}
        self.bytes_read: dict[str, int] = {}
        self.is_lean = False
        self._progress = progress
        self._known = known or {}
        self._memory_bytes = memory_bytes
        self._others: dict[str, HostTrace] = {}
        self._looked = threading.local()  # files of the question that a thread answers, by path

    @contextmanager
    def one_state(self) -> Iterator[bool]:
        """A context in which every file is the one that it was when it was first looked at; it yields whether it is
        the outermost.  Reading another one raises UnreadableError with the code `CHANGED`."""
        is_outermost = not hasattr(self._looked, "at")
        if is_outermost:
            self._looked.at = {}
        try:
            yield is_outermost
        finally:
            if is_outermost:
                del self._looked.at

    def trace(self, file: HostFile, pool: ArrayPool | None = None) -> HostTrace:
        """A host's trace, from the shelf if it is there, else read: a pool gets the memory of the file.  Raises
        InputError."""
        decode = functools.partial(self._decode, file, pool or ArrayPool())
        return self.shelf.get(self._place(file), decode, max(1, memory_of(file)))

    def is_decoded(self, file: HostFile) -> bool:
        """Whether a host's trace is in memory, so that `trace` returns at once."""
        return self._place(file) in self.shelf

    def _place(self, file: HostFile) -> tuple[store.Identity, str, tuple[str, ...]]:
        """Where a host's trace is on the shelf."""
        return self.identity(file), file.host, tuple(each.path for each in file.captures)

    def processes(self, file: HostFile, tool_module: str = "") -> tuple[str, ...]:
        """The names of the processes whose traces a file holds; reads it unless that is known.  Raises InputError."""
        if file.process or self.is_decoded(file) or not file.format.may_hold_several(file.path):
            return (file.host,)
        kept = self.cache.get_bytes(self.key(file), _PROCESSES)
        if kept is not None:
            return tuple(kept.decode("utf-8", "replace").split("\0"))
        with collecting_later(), importing(*filter(None, (file.format.reader.partition(":")[0], tool_module))):
            traces = self._decode_all(file, ArrayPool())
        names = tuple(trace.host for trace in traces)
        if len(traces) == 1:
            self.shelf.get(self._place(file), lambda: traces[0], max(1, memory_of(file)))
        else:
            self._others = dict(zip(names, traces, strict=True))
        if (key := self.key(file)) is not None:
            self.cache.put_bytes(key, _PROCESSES, "\0".join(names).encode())
        return names

    def trace_of_steps(self, file: HostFile, rows: tuple[int, ...]) -> HostTrace:
        """A host's trace with only some of its steps, given by their places."""
        from stepscope.analysis.steps.step_range import take_steps

        key = *self._place(file), rows
        return self.shelf.get(key, lambda: take_steps(self.trace(file), rows))

    def key(self, file: HostFile) -> str | None:
        """The cache key for results derived from a host's file; None without a cache."""
        if not self.cache.is_on:
            return None
        known = self._known.get(file.host)
        return known.key if known else cache_key(self._identities(file), file.host)

    def identify(self, file: HostFile) -> KnownFile:
        """What another process need not find out again.  Raises NotFoundError, AccessError."""
        identity = self.identity(file)
        return KnownFile(identity, cache_key(self._identities(file), file.host) if self.cache.is_on else None)

    def kept_partial(self, tool: Tool, file: HostFile, within_steps: bool = False) -> Any | None:
        """One host's part of a report from the cache; None if it is not there."""
        content = self.cache.get_bytes(self.key(file), part_name(tool, within_steps))
        return None if content is None else decode_partial(tool, content)

    def partial(self, tool: Tool, file: HostFile, within_steps: bool = False) -> Any:
        """One host's part of a report, from the cache if possible; `within_steps` restricts it to the steps."""
        kept = self.kept_partial(tool, file, within_steps)
        if kept is not None:
            return kept
        if self.is_lean and not (within_steps or tool.asks_for_all or tool.edition):
            with suppress(LeftOutError):
                return self._make_partial(tool, file, self._lean_trace)
        return self._make_partial(tool, file, self._trace_within_steps if within_steps else self.trace, within_steps)

    def _make_partial(
        self, tool: Tool, file: HostFile, read: Callable[[HostFile, ArrayPool], HostTrace], within_steps: bool = False
    ) -> Any:
        # The reader comes first, since decoding waits for it; last, while the trace is made, what the end needs.
        modules = (file.format.reader.partition(":")[0], tool.module, tool_named(_TRUST).module, _WRITER)
        pool = ArrayPool()
        with collecting_later():
            with importing(*modules):
                trace = read(file, pool)
            self._progress(f"analysing {file.host} ({len(trace.events):,} events)")
            with pool:
                partial = _analyse(tool, trace)
        self._keep(tool, file, partial, trace, within_steps)
        return partial

    def _lean_trace(self, file: HostFile, pool: ArrayPool) -> HostTrace:
        """A host's trace without the stats that most tools do not need, unless the whole trace is there."""
        if self.is_decoded(file) or file.process or not file.format.releases_input:
            return self.trace(file, pool)

        def decode() -> HostTrace:
            return self._read(file, pool, lambda: [_read_trace(file, pool, LEFT_OUT)])[0]

        trace = self.shelf.get((*self._place(file), _LEAN), decode, max(1, memory_of(file)))
        if trace.has_stat([*LEFT_OUT]):
            return trace
        return self.shelf.get(self._place(file), lambda: replace(trace, left_out=frozenset()))

    def partial_of_steps(self, tool: Tool, file: HostFile, rows: tuple[int, ...]) -> Any:
        """One host's part of a report on some of its steps.  Not cached: there are too many ranges."""
        return tool.partial(self.trace_of_steps(file, rows))

    def identity(self, file: HostFile) -> store.Identity:
        """That of a host's file.  Raises NotFoundError, AccessError."""
        known = self._known.get(file.host)
        return known.identity if known else self._state_of(file.path)

    def _state_of(self, path: str) -> store.Identity:
        """A file's identity, remembered within `one_state`."""
        states: dict[str, store.Identity] = getattr(self._looked, "at", {})
        if path not in states:
            states[path] = store.identity(path)
        return states[path]

    def _identities(self, file: HostFile) -> list[store.Identity]:
        """Those of all files that a host's trace is made of."""
        return [self._state_of(each.path) for each in (file, *file.captures)]

    def _keep(self, tool: Tool, file: HostFile, partial: Any, trace: HostTrace, within_steps: bool) -> None:
        key = self.key(file)
        if key is None:
            return
        self.cache.put_bytes(key, part_name(tool, within_steps), encode_partial(partial))
        is_large = self.cache.folder is not None and not within_steps and len(trace.events) >= WORTH_KEEPING
        if is_large and self.cache.get_columns(key, _FOREST, only=()) is None:
            from stepscope.analysis.trace.grouping import forest_columns

            self.cache.put_columns(key, _FOREST, forest_columns(trace))

    def _trace_within_steps(self, file: HostFile, _: ArrayPool) -> HostTrace:
        """A host's trace without events before its first step and after its last; the whole trace without steps."""
        rows = tuple(range(len(self.partial(tool_named("steps"), file).rows)))
        return self.trace_of_steps(file, rows) if rows else self.trace(file)

    def _decode(self, file: HostFile, pool: ArrayPool) -> HostTrace:
        if not file.process:
            return self._read(file, pool, lambda: [_read_trace(file, pool)])[0]
        if file.process not in self._others:
            self._others = {trace.host: trace for trace in self._decode_all(file, pool)}
        if file.process not in self._others:
            raise NotFoundError(f"the file holds no process {file.process!r} any more", path=file.path)
        return self._others.pop(file.process)

    def _decode_all(self, file: HostFile, pool: ArrayPool) -> Sequence[HostTrace]:
        """The traces of all processes in a file."""
        return self._read(file, pool, lambda: _read_hosts(file))

    def _read(self, file: HostFile, pool: ArrayPool, read: Callable[[], Sequence[HostTrace]]) -> Sequence[HostTrace]:
        """What `read` reads of a file, ready to be analysed."""
        if self._memory_bytes is not None and memory_of(file) > self._memory_bytes:
            from stepscope.engines.spilling import make_room

            make_room(file, self._memory_bytes)
        self._progress(f"reading {file.host}" + (f" ({file.size / 1e6:,.1f} MB)" if file.size else ""))
        self.bytes_read[file.host] = 0
        with reading.listening(lambda nbytes: self._note_read(file, nbytes), file.size):
            traces = [_finish(_merge_captures(trace, file, pool)) for trace in read()]
        traces = self._require_same(file, traces)
        self.bytes_read[file.host] = file.size or 0
        self.events_read[file.host] = sum(len(trace.events) for trace in traces)
        if len(traces) == 1 and len(traces[0].events) >= WORTH_KEEPING:
            self._restore_forest(traces[0], file)
        return traces

    def _require_same(self, file: HostFile, traces: list[HostTrace]) -> list[HostTrace]:
        """The traces, if the file is still the one that was looked at; what has grown since is said.

        Raises UnreadableError if it is another one.
        """
        known, looked = self._known.get(file.host), getattr(self._looked, "at", {})
        before = known.identity if known else looked.get(file.path)
        if before is None or store.is_remote(file.path):
            return traces
        now = store.identity(file.path)
        if (now.size, now.modified_ns) == (before.size, before.modified_ns):
            return traces
        is_another = known is None and now.inode != before.inode  # numbers of files mean something on one machine
        if is_another or (now.size or 0) <= (before.size or 0):
            reason = "the file was replaced while it was read"
            raise UnreadableError(reason, code=CHANGED, path=file.path, hint="try again once nobody writes it")
        problem = Problem(
            "growing",
            "the file was being written while it was read",
            path=file.path,
            kept="what had been written",
            hint="open it again once it is complete",
        )
        return [replace(trace, problems=(*trace.problems, problem), partial=True) for trace in traces]

    def _note_read(self, file: HostFile, nbytes: int) -> None:
        self.bytes_read[file.host] = min(self.bytes_read[file.host] + nbytes, file.size or 0)

    def _restore_forest(self, trace: HostTrace, file: HostFile) -> None:
        from stepscope.analysis.trace.grouping import restore_forest

        kept = self.cache.get_columns(self.key(file), _FOREST)
        if kept is not None:
            restore_forest(trace, kept)


def _analyse(tool: Tool, trace: HostTrace) -> Any:
    """A host's part of a report.  A second core computes what the tool needs late, then what every report needs.  That
    rests on the account of the steps, with which many tools begin: so that core begins with what the account needs
    late, and a tool that is done before helps with the rest."""
    if len(trace.events) < _WORTH_A_THREAD or usable_cores() == 1:
        return tool.partial(trace)
    trust = tool_named(_TRUST)
    ahead = [functools.partial(each.compute_ahead, trace) for each in (tool, trust)]
    with computing(*ahead, lambda: trust.partial(trace)):
        found = tool.partial(trace)
        trust.partial(trace)
        return found


def _finish(trace: HostTrace) -> HostTrace:
    from stepscope.analysis.steps.named_steps import mark_named_steps
    from stepscope.analysis.trace.repairs import repair
    from stepscope.model.arrays import settle_arrays

    return settle_arrays(mark_named_steps(repair(trace)))


def _merge_captures(trace: HostTrace, file: HostFile, pool: ArrayPool) -> HostTrace:
    """The trace with the ops of the graphs that it replays; captures that cannot be read are named."""
    if not file.captures:
        return trace
    from stepscope.analysis.trace.captured_graphs import merge_captures

    problems: list[Problem] = []

    def read_captures() -> Iterator[HostTrace]:
        for each in file.captures:
            try:
                yield _read_trace(each, pool)
            except InputError as error:
                problems.append(error.problem)

    merged = merge_captures(trace, read_captures())
    return replace(merged, problems=(*merged.problems, *problems)) if problems else merged


def _read_trace(file: HostFile, pool: ArrayPool, left_out: frozenset[str] = frozenset()) -> HostTrace:
    """Reads a host's file, without some stats of events, and imports what makes the trace of it meanwhile."""
    if file.format.takes_pieces and (file.size or 0) >= _LARGE_FILE_BYTES:
        return file.format.read(reading.report_pieces(store.read_pieces(file.path)), file.path, file.host)
    from stepscope.formats.threads import Workers

    fetch = (
        functools.partial(_fetch_released, file, pool, left_out)
        if file.format.releases_input
        else functools.partial(store.read_bytes, file.path)
    )
    with Workers(1) as background:
        content = background.submit(functools.partial(contextvars.copy_context().run, fetch))
        file.format.load_reader()
        data = content.result()
    if not file.format.releases_input:
        return file.format.read(data, file.path, file.host)
    with pool:
        return file.format.read(data, file.path, file.host)


def _fetch_released(file: HostFile, pool: ArrayPool, left_out: frozenset[str]) -> Any:
    """What can be made of a file's bytes without its reader; a pool gets as much memory, which nobody uses then."""
    if file.format.decoder:
        source = store.open_source(file.path)
        pool.reserve(source.size)
        with store.reading(file.path):
            return file.format.decode(source, left_out)
    data: list[bytes | memoryview] = [store.read_buffer(file.path)]
    pool.receive(data[0])
    return file.format.decode(_release_piece(data), left_out)


def _read_hosts(file: HostFile) -> Sequence[HostTrace]:
    """Reads all processes of a host's file."""
    is_large = (file.size or 0) >= _LARGE_FILE_BYTES
    if file.format.takes_pieces and is_large:
        return file.format.read_hosts(reading.report_pieces(store.read_pieces(file.path)), file.path, file.host)
    return file.format.read_hosts(store.read_bytes(file.path), file.path, file.host)


def _release_piece(data: list[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yields the only piece of a list after removing it, so that the list does not keep it in memory."""
    yield data.pop()


# ---- partials as bytes -----------------------------------------------------------------------------------------------


def part_name(tool: Tool, within_steps: bool) -> str:
    """The name of a partial's entry in the cache."""
    return f"{tool.partial_of or tool.cache_name}.{'steps' if within_steps else 'partial'}"


def encode_partial(partial: Any) -> bytes:
    """A partial, or a list of them, as bytes."""
    import msgspec

    return msgspec.msgpack.encode(partial)


def decode_partial(tool: Tool, content: bytes) -> Any | None:
    """A partial from its bytes; None if something else wrote them."""
    return _decode(tool, content, many=False)


def decode_partials(tool: Tool, content: bytes) -> list[Any] | None:
    """A list of partials from its bytes; None if something else wrote them."""
    found: list[Any] | None = _decode(tool, content, many=True)
    return found


def _decode(tool: Tool, content: bytes, many: bool) -> Any | None:
    import msgspec

    with _MAKING_DECODERS:
        decoder = _decoder_of(tool, many)
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


_MAKING_DECODERS = threading.Lock()
"""Held while a decoder is made: msgspec crashes if two threads inspect the fields of a dataclass for the first time at
once, as when the page opens two sessions."""


@functools.cache
def _decoder_of(tool: Tool, many: bool) -> Any:
    import msgspec

    kind = tool.partial_type
    return msgspec.msgpack.Decoder(list[kind] if many else kind)  # type: ignore[valid-type]
