"""The work on the hosts of a session: in this process, or by an engine."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stepscope.cache import cache_key
from stepscope.engines.budget import default_budget, memory_from, memory_of
from stepscope.engines.choice import LOCAL, EngineChoice, engine_from
from stepscope.engines.folding import CONDENSE_EVERY
from stepscope.engines.host_work import HostWork, KnownFile, decode_partials, encode_partial, part_name
from stepscope.errors import InputError, Problem, UsageError
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.analysis.registry import Tool
    from stepscope.engines.base import Engine
    from stepscope.engines.schedule import HostEnded
    from stepscope.formats.session import HostFile

WORTH_PROCESSES_BYTES = 48 << 20
"""Hosts with as much to read together are analysed faster by several processes, which take half a second to start."""
_LEAST_BYTES_OF_HOST = 1 << 20  # 25 ms go into a host however little it recorded, as into reading so much more

SECONDS_VARIABLE = "STEPSCOPE_TASK_SECONDS"
_LEAST_SECONDS = 600.0
_LEAST_BYTES_PER_SECOND = 1e6  # a tenth of what the slowest profile on the slowest machine was read with
_LEAST_CHILD_BYTES = 256 << 20
_MANY_HOSTS = 16  # from here on, their partials are kept together as well, so that one file answers the next time

_opened: list[Engine] = []


@dataclass(frozen=True)
class StepSelection:
    """Which steps to analyse.

    Attributes:
        within_steps: only from the first step to the last.
        rows: the places of the chosen steps, by host; None for no choice.
    """

    within_steps: bool = False
    rows: dict[str, tuple[int, ...]] | None = None


WHOLE = StepSelection()


@dataclass(frozen=True)
class Findings:
    """What became of the hosts.

    Attributes:
        partials: by tool, those of the hosts that were analysed, condensed, in the order of the session.
        problems: of the hosts that are left out, in that order.
    """

    partials: dict[str, list[Any]]
    problems: list[Problem]


@dataclass(frozen=True)
class Placement:
    """Where to analyse hosts, and with how much memory; None for what is best."""

    engine: EngineChoice | None
    memory_bytes: int | None


def parse_placement(engine: str | None, memory: str | None) -> Placement:
    """What a user wrote, else what the environment says.  Raises UsageError."""
    return Placement(engine_from(engine), memory_from(memory))


class SessionWork:
    """Analyses the hosts of a session, where the user wants it.

    Args:
        work: the work on one host in this process.
        where: what the user wants.
        progress: called with a short sentence.
    """

    def __init__(self, work: HostWork, where: Placement, progress: Callable[[str], None]) -> None:
        self.host = work
        self._choice = where.engine
        self._memory = where.memory_bytes
        self._progress = progress
        self._engine: Engine | None = None
        self._opening = threading.Lock()

    def analyse(
        self,
        files: Sequence[HostFile],
        tools: Sequence[Tool],
        selection: StepSelection = WHOLE,
        ended: HostEnded = lambda host, problem: None,
    ) -> Findings:
        """Partials of all hosts.  A host that cannot be analysed is left out and named.

        Args:
            files: one for each host.
            tools: whose partials are wanted.
            selection: which steps.
            ended: called as each host ends, but not where the partials of all hosts are kept together; what it raises
                ends the work.

        Raises:
            EngineError: the chosen engine cannot be used.
        """
        kept = self._kept(files, tools, selection)
        if kept is not None:
            return kept
        choice = self._choose(files, tools, selection)
        if choice is None:
            found = self._analyse_here(files, tools, selection, ended)
        else:
            found = self._analyse_there(choice, files, tools, selection, ended)
        if not found.problems:
            self._keep(files, found, selection)
        return found

    # -- in this process -----------------------------------------------------------------------------------------------

    def _analyse_here(
        self, files: Sequence[HostFile], tools: Sequence[Tool], selection: StepSelection, ended: HostEnded
    ) -> Findings:
        partials: dict[str, list[Any]] = {tool.name: [] for tool in tools}
        problems = []
        for number, file in enumerate(files, 1):
            try:
                found = [self.partial(tool, file, selection) for tool in tools]
            except InputError as error:
                problems.append(error.problem)
                ended(file.host, error.problem)
                continue
            for tool, partial in zip(tools, found, strict=True):
                partials[tool.name].append(partial)
                if number % CONDENSE_EVERY == 0:
                    partials[tool.name] = tool.combine_hosts(partials[tool.name])
            ended(file.host, None)
        return Findings(partials, problems)

    def only_partial(self, tool: Tool, file: HostFile, selection: StepSelection = WHOLE) -> Any:
        """The part of the only host of a report; a child process computes it if the file is too large for this one.

        Raises:
            InputError: the host cannot be read.
        """
        if not self._must_spill([file]):
            return self.partial(tool, file, selection)
        found = self.analyse([file], [tool], selection)
        if found.problems:
            raise InputError.of(found.problems[0])
        return found.partials[tool.name][0]

    def fits_here(self, file: HostFile) -> bool:
        """Whether this process may read a file itself."""
        return not self._must_spill([file])

    def partial(self, tool: Tool, file: HostFile, selection: StepSelection = WHOLE) -> Any:
        """One host's part of a report, computed in this process unless it is kept.  Raises InputError."""
        if selection.rows is not None:
            return self.host.partial_of_steps(tool, file, selection.rows[file.host])
        return self.host.partial(tool, file, selection.within_steps)

    # -- by an engine --------------------------------------------------------------------------------------------------

    def _choose(
        self, files: Sequence[HostFile], tools: Sequence[Tool], selection: StepSelection
    ) -> EngineChoice | None:
        """The engine that the user chose, else processes if they pay; None for this process."""
        if self._must_spill(files) and self._choice is None:
            return EngineChoice(LOCAL)
        if len(files) < 2:
            return None
        if self._choice is not None:
            return self._choice
        if sum(max(file.size or 0, _LEAST_BYTES_OF_HOST) for file in files) < WORTH_PROCESSES_BYTES:
            return None
        from stepscope.formats.threads import usable_cores

        return EngineChoice(LOCAL) if usable_cores() > 1 else None

    def _must_spill(self, files: Sequence[HostFile]) -> bool:
        """Whether a file is too large for this process, and a child could do it."""
        if max(map(memory_of, files), default=0) <= self._budget():
            return False
        from stepscope.engines.spilling import is_allowed, is_possible

        return is_possible() and not is_allowed()

    def _analyse_there(
        self,
        choice: EngineChoice,
        files: Sequence[HostFile],
        tools: Sequence[Tool],
        selection: StepSelection,
        ended: HostEnded,
    ) -> Findings:
        """Takes what the cache holds, and has the engine analyse the rest; it is opened only if something is left."""
        from stepscope.engines.schedule import TaskSchedule

        schedule = TaskSchedule([tool.name for tool in tools], self._progress, ended)
        left: list[tuple[int, HostFile, KnownFile]] = []
        for place, file in enumerate(files):
            try:
                kept = self._kept_partials(file, tools, selection)
                if kept is None:
                    left.append((place, file, self.host.identify(file)))
                else:
                    schedule.add_known(place, file.host, kept)
            except InputError as error:
                schedule.add_failed(place, file.host, error.problem)
        if left:
            engine = self._open(choice, files)
            schedule.run(engine, self._tasks(left, tools, selection, engine))
        self.host.events_read.update(schedule.events)
        return Findings(schedule.partials(), schedule.problems())

    def _kept_partials(self, file: HostFile, tools: Sequence[Tool], selection: StepSelection) -> dict[str, Any] | None:
        if selection.rows is not None:
            return None
        kept = {tool.name: self.host.kept_partial(tool, file, selection.within_steps) for tool in tools}
        return None if any(partial is None for partial in kept.values()) else kept

    def _open(self, choice: EngineChoice, files: Sequence[HostFile]) -> Engine:
        from stepscope.engines.choice import open_engine

        with self._opening:
            if self._engine is None:
                self._engine = open_engine(choice, self._most_processes(files), self._progress)
                _opened.append(self._engine)
                weakref.finalize(self, _close, self._engine)
            return self._engine

    def _most_processes(self, files: Sequence[HostFile]) -> int:
        """How many processes of this machine fit into the memory budget with the largest files at once."""
        return max(1, self._budget() // max(_LEAST_CHILD_BYTES, max(map(memory_of, files), default=0)))

    def _budget(self) -> int:
        return self._memory or default_budget()

    def _tasks(
        self,
        left: Sequence[tuple[int, HostFile, KnownFile]],
        tools: Sequence[Tool],
        selection: StepSelection,
        engine: Engine,
    ) -> list[Any]:
        """Tasks for the hosts that are left, each of neighbouring ones."""
        import socket

        from stepscope.engines.schedule import cut_tasks
        from stepscope.engines.task import Task

        whole = [
            Task(
                first=run[0][0],
                files=tuple(file for _, file, _ in run),
                known=tuple(known for _, _, known in run),
                tools=tuple(tool.name for tool in tools),
                within_steps=selection.within_steps,
                rows=None if selection.rows is None else tuple(selection.rows[file.host] for _, file, _ in run),
                cache=self.host.cache.options,
                machine=socket.gethostname(),
                memory_bytes=self._memory_of_child(engine),
                seconds=limit_seconds([file for _, file, _ in run]),
            )
            for run in _neighbours(left)
        ]
        return cut_tasks(whole, engine.slots())

    def _memory_of_child(self, engine: Engine) -> int | None:
        """The share of one child in the budget; None to let the machine of a worker decide."""
        if engine.name != LOCAL:
            return self._memory
        return self._budget() // engine.slots()

    # -- what is kept of the whole session -----------------------------------------------------------------------------

    def _session_key(self, files: Sequence[HostFile], selection: StepSelection) -> str | None:
        if len(files) < _MANY_HOSTS or selection.rows is not None or not self.host.cache.is_on:
            return None
        try:
            identities = [self.host.identity(file) for file in files]
        except InputError:  # a file is gone by now: its host will be named
            return None
        return cache_key(identities, "hosts", [file.host for file in files])

    def _kept(self, files: Sequence[HostFile], tools: Sequence[Tool], selection: StepSelection) -> Findings | None:
        key = self._session_key(files, selection)
        if key is None:
            return None
        partials = {}
        for tool in tools:
            content = self.host.cache.get_bytes(key, part_name(tool, selection.within_steps))
            partials[tool.name] = None if content is None else decode_partials(tool, content)
        whole = {name: kept for name, kept in partials.items() if kept is not None}
        return Findings(whole, []) if len(whole) == len(tools) else None

    def _keep(self, files: Sequence[HostFile], found: Findings, selection: StepSelection) -> None:
        from stepscope.analysis.registry import tool_named

        key = self._session_key(files, selection)
        if key is None:
            return
        for name, partials in found.partials.items():
            content = encode_partial(tool_named(name).combine_hosts(partials))
            self.host.cache.put_bytes(key, part_name(tool_named(name), selection.within_steps), content)


def _neighbours(places: Sequence[tuple[int, HostFile, KnownFile]]) -> list[list[tuple[int, HostFile, KnownFile]]]:
    """Runs of hosts that follow each other in the session."""
    runs: list[list[tuple[int, HostFile, KnownFile]]] = []
    for item in places:
        if not runs or runs[-1][-1][0] + 1 != item[0]:
            runs.append([])
        runs[-1].append(item)
    return runs


def limit_seconds(files: Sequence[HostFile]) -> float:
    """How long one host may take.  Raises UsageError if the variable for that holds no such time."""
    chosen = os.environ.get(SECONDS_VARIABLE, "").strip()
    if not chosen:
        return _LEAST_SECONDS + max(file.size or 0 for file in files) / _LEAST_BYTES_PER_SECOND
    try:
        seconds = float(chosen)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UsageError(f"{SECONDS_VARIABLE} is {chosen!r}, which is not a time", hint="give seconds, such as 600")
    return seconds


def _close(engine: Engine) -> None:
    if engine in _opened:
        _opened.remove(engine)
        engine.close()


def close_engines() -> None:
    """Ends everything that engines of this process started, for a command that ends without taking itself down."""
    for engine in [*_opened]:
        _close(engine)
