"""The XLA programs that a trace holds, each decoded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from stepscope.model import HostTrace, PlaneKind, StatTag, stat_names
from stepscope.model.arrays import U8
from stepscope.records import dataclass
from stepscope.vocabulary.xla import split_program

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module

T = TypeVar("T")

_KEPT_BYTES = 512 << 20  # of serialized programs whose decoded form is kept; decoded they take about as much again
_THREADS = 4

WHY_NONE = (
    "the capture holds no XLA program; JAX records them with jax.profiler.trace or ProfilerOptions(), TensorFlow with "
    "jit_compile=True, unless the option enable_hlo_proto is off"
)


@dataclass(frozen=True)
class Program:
    """One program.

    Attributes:
        label: the name that is unique in its trace, such as `jit_step(4)`.
        module: the module's name.
        number: the program's number, with the bits of a signed one; None if the trace does not say.
        start, stop: where its serialized form lies among the texts of the trace.
    """

    label: str
    module: str
    number: int | None
    start: int
    stop: int


@dataclass(frozen=True)
class _Decoded:
    """A decoded program, and what was computed of it."""

    module: Module
    derived: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Programs:
    """The programs of a trace, in its order."""

    blob: U8
    entries: tuple[Program, ...]
    _decoded: dict[int, _Decoded] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.entries)

    def module(self, place: int) -> Module:
        """A decoded program.  The last ones are kept."""
        return self._entry(place).module

    def derived(self, place: int, key: str, compute: Callable[[Module], T]) -> T:
        """What `compute` makes of a program, computed once while the program is kept."""
        entry = self._entry(place)
        if key not in entry.derived:
            entry.derived[key] = compute(entry.module)
        return cast("T", entry.derived[key])

    def read(self, places: Iterable[int]) -> None:
        """Decodes several programs at once, on several threads."""
        missing = [place for place in dict.fromkeys(places) if place >= 0 and place not in self._decoded]
        if len(missing) > 1:
            from concurrent.futures import ThreadPoolExecutor  # which only such a profile needs

            with ThreadPoolExecutor(_THREADS) as pool:
                for place, entry in zip(missing, pool.map(self._decode, missing), strict=True):
                    self._keep(place, entry)

    def may_have_buffer_assignment(self, place: int) -> bool:
        """False if a program is sound and its compiler did not record how its memory is laid out; decodes no more."""
        from stepscope.analysis.hlo.module import may_have_buffer_assignment

        entry = self.entries[place]
        return may_have_buffer_assignment(self.blob[entry.start : entry.stop])

    def _entry(self, place: int) -> _Decoded:
        if place not in self._decoded:
            self._keep(place, self._decode(place))
        return self._decoded[place]

    def _decode(self, place: int) -> _Decoded:
        from stepscope.analysis.hlo.module import read_module  # which most traces do without

        entry = self.entries[place]
        return _Decoded(read_module(self.blob[entry.start : entry.stop]))

    def _keep(self, place: int, entry: _Decoded) -> None:
        self._decoded[place] = entry
        while len(self._decoded) > 1 and self._count_kept_bytes() > _KEPT_BYTES:
            del self._decoded[next(iter(self._decoded))]

    def _count_kept_bytes(self) -> int:
        return sum(self.entries[place].stop - self.entries[place].start for place in self._decoded)

    def find(self, number: int | None, module: str) -> int:
        """The place of a program by its number and its module's name, -1 if it is not there.

        Numbers may repeat after a restart and names do often: what fits both wins, then a name that only one program
        has.  The number alone counts if no program has the name.
        """
        named = [at for at, entry in enumerate(self.entries) if entry.module == module]
        fits = [at for at in named or range(len(self)) if number is not None and self.entries[at].number == number]
        if fits:
            return fits[-1]
        return named[0] if len(named) == 1 else -1

    def find_all(self, wanted: Sequence[tuple[int | None, str]]) -> list[int]:
        """The places of several programs by number and module, -1 for what is not there.

        A program that JAX loads from its cache on disk runs under the number that it had when it was compiled, and is
        recorded under a new one.  If no number of a module fits and as many of its programs ran as are recorded, they
        are matched in the order of their numbers, in which both were made.
        """
        places = [self.find(*each) for each in wanted]
        lost: dict[str, list[int]] = {}
        for at, ((_, module), place) in enumerate(zip(wanted, places, strict=True)):
            if place < 0 and module:
                lost.setdefault(module, []).append(at)
        for module, mine in lost.items():
            recorded = [at for at, entry in enumerate(self.entries) if entry.module == module]
            if len(mine) == len(recorded) and len({wanted[at] for at in mine}) == len(mine):
                mine.sort(key=lambda at: wanted[at][0] or 0)
                recorded.sort(key=lambda at: self.entries[at].number or 0)
                for at, place in zip(mine, recorded, strict=True):
                    places[at] = place
        return places


def programs_of(trace: HostTrace) -> Programs:
    """The programs of a trace."""
    return trace.derived("xla programs", _find_programs)


def _find_programs(trace: HostTrace) -> Programs:
    stats, types = trace.type_stats, trace.event_types
    wanted = [row for row in map(trace.strings.find, stat_names.HLO_PROTO) if row > 0]
    rows = np.flatnonzero(np.isin(stats.name, np.array(wanted, np.int32)) & (stats.tag == StatTag.BYTES))
    owners = np.searchsorted(stats.offsets, rows, side="right") - 1
    among = trace.planes.kind[types.plane[owners]] == PlaneKind.METADATA
    found: dict[str, Program] = {}
    for owner, value in zip(owners[among].tolist(), stats.value[rows[among]].tolist(), strict=True):
        label = trace.strings[types.name[owner]]
        start, stop = trace.strings.offsets[value : value + 2].tolist()
        found[label] = program_at(label, start, stop)
    return Programs(trace.strings.blob, tuple(found.values()))


def program_at(label: str, start: int, stop: int) -> Program:
    """A program by its label and where it lies."""
    module, number = split_program(label)
    return Program(label, module, None if number is None else signed(number), start, stop)


def signed(number: int) -> int:
    """A number of 64 bits as the signed one that columns hold.

    >>> signed((1 << 64) - 1)
    -1
    """
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >= 1 << 63 else number
