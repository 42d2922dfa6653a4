"""The XLA programs that a trace holds, each decoded when it is first asked for."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from stepscope.analysis.xla.costs import Costs, costs_of
from stepscope.analysis.xla.module import Module, read_module
from stepscope.model import HostTrace, PlaneKind, StatTag, stat_names
from stepscope.model.arrays import U8
from stepscope.records import dataclass
from stepscope.vocabulary.xla import split_program

_KEPT_BYTES = 256 << 20  # of serialized programs whose decoded form is kept; decoded they take a few times as much

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
        number: the program's number, with the bits of a signed one; None if the trace tells none.
        start, stop: where its serialized form lies among the texts of the trace.
    """

    label: str
    module: str
    number: int | None
    start: int
    stop: int


@dataclass(frozen=True)
class Programs:
    """The programs of a trace, in its order."""

    blob: U8
    entries: tuple[Program, ...]
    _modules: dict[int, Module] = field(default_factory=dict, repr=False, compare=False)
    _costs: dict[int, Costs] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.entries)

    def module(self, place: int) -> Module:
        """A decoded program.  The last ones asked for are kept."""
        if place not in self._modules:
            entry = self.entries[place]
            self._modules[place] = read_module(self.blob[entry.start : entry.stop])
            while len(self._modules) > 1 and self._kept_bytes() > _KEPT_BYTES:
                oldest = next(iter(self._modules))
                del self._modules[oldest]
                self._costs.pop(oldest, None)
        return self._modules[place]

    def _kept_bytes(self) -> int:
        return sum(self.entries[place].stop - self.entries[place].start for place in self._modules)

    def costs(self, place: int) -> Costs:
        """What the instructions of a program cost."""
        module = self.module(place)
        if place not in self._costs:
            self._costs[place] = costs_of(module)
        return self._costs[place]

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
        found[label] = _program(label, start, stop)
    return Programs(trace.strings.blob, tuple(found.values()))


def _program(label: str, start: int, stop: int) -> Program:
    module, number = split_program(label)
    return Program(label, module, None if number is None else signed(number), start, stop)


def signed(number: int) -> int:
    """A number of 64 bits as the signed one that columns hold.

    >>> signed((1 << 64) - 1)
    -1
    """
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >= 1 << 63 else number
