"""The XLA programs that a trace holds, each decoded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import TypeVar, cast

import numpy as np

from stepscope.analysis.hlo.module import Module, may_have_buffer_assignment, read_module
from stepscope.model import HostTrace, PlaneKind, StatTag, stat_names
from stepscope.model.arrays import U8
from stepscope.records import dataclass
from stepscope.vocabulary.xla import split_program

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
            with ThreadPoolExecutor(_THREADS) as pool:
                for place, entry in zip(missing, pool.map(self._decode, missing), strict=True):
                    self._keep(place, entry)

    def may_have_buffer_assignment(self, place: int) -> bool:
        """False if a program is sound and its compiler did not record how its memory is laid out; decodes no more."""
        entry = self.entries[place]
        return may_have_buffer_assignment(self.blob[entry.start : entry.stop])

    def _entry(self, place: int) -> _Decoded:
        if place not in self._decoded:
            self._keep(place, self._decode(place))
        return self._decoded[place]

    def _decode(self, place: int) -> _Decoded:
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

        Numbers may repeat after a restart and names do often: what fits both wins, then the number, then a name that
        only one program has.
        """
        fits_name = [at for at, entry in enumerate(self.entries) if entry.module == module]
        fits_number = [at for at, entry in enumerate(self.entries) if entry.number == number and number is not None]
        for fits in ([at for at in fits_number if at in fits_name], fits_number):
            if fits:
                return fits[-1]
        return fits_name[0] if len(fits_name) == 1 else -1


def programs_of(trace: HostTrace) -> Programs:
    """The programs of a trace."""
    return trace.derived("xla programs", _find_programs)


def _find_programs(trace: HostTrace) -> Programs:
    stats, types = trace.type_stats, trace.event_types
    wanted = [row for row in map(trace.strings.find, stat_names.HLO_PROTO) if row > 0]
    rows = np.flatnonzero(np.isin(stats.name, wanted) & (stats.tag == StatTag.BYTES))
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
