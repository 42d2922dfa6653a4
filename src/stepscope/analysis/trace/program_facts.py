"""What a capture wrote down about the program itself: the graphs that it traced, and the threads of its ops."""

from __future__ import annotations

import json
from math import prod

from stepscope.analysis.trace.environment import capture_facts
from stepscope.model import HostTrace
from stepscope.records import dataclass

_GRAPH, _CORES, _THREADS, _EMPTY, _TAKES = "graph:", "cores", "op_threads", "empty:", "takes:"
_IGNORED, _PADDED, _SAME, _ZERO = "ignored:", "padded:", "same:", "zero_gradient:"
_SAME_TENSORS = "same_tensors:"
_PARAMETERS, _LARGEST = "parameters:", "largest_parameter"
_MOST_DIGITS = 15  # of a side: no tensor has a longer one
_NEARLY_ALL = 0.9  # of the numbers: then an update of all of them is one of that table


@dataclass(frozen=True)
class TracedGraph:
    """A function that the framework has traced into a graph.

    Attributes:
        nodes: number of nodes; `unused`: how many of them no result and no effect depends on.
        types: op type -> number of nodes, the most frequent ones.
        unused_layers: scopes of unused nodes that multiply or convolve.
    """

    name: str
    nodes: int
    unused: int
    types: dict[str, int]
    unused_layers: tuple[str, ...]


@dataclass(frozen=True)
class OpThreads:
    """How many cores the process may use, and how many threads one op; None where the capture does not say."""

    cores: int | None
    threads: int | None


def op_threads_of(trace: HostTrace) -> OpThreads:
    """The cores and threads of a host's program."""
    facts = capture_facts(trace)
    cores, threads = (facts.get(name) for name in (_CORES, _THREADS))
    return OpThreads(cores if isinstance(cores, int) else None, threads if isinstance(threads, int) else None)


@dataclass(frozen=True)
class Parameters:
    """What the program's optimizers hold.

    Attributes:
        numbers: how many numbers of each type, such as "float32"; empty where the capture does not say.
        largest: the sides of the largest parameter.
    """

    numbers: dict[str, int]
    largest: tuple[int, ...]

    @property
    def are_double(self) -> bool:
        """Whether most of them are floats of 64 bits."""
        return 2 * self.numbers.get("float64", 0) > sum(self.numbers.values())

    @property
    def are_one_table(self) -> bool:
        """Whether nearly all of them are one with rows and columns."""
        return len(self.largest) == 2 and prod(self.largest) >= _NEARLY_ALL * sum(self.numbers.values()) > 0


def parameters_of(trace: HostTrace) -> Parameters:
    """The parameters that a host's program trains."""
    facts = capture_facts(trace)
    counts = {name.removeprefix(_PARAMETERS): count for name, count in facts.items() if name.startswith(_PARAMETERS)}
    sides = str(facts.get(_LARGEST, "")).split("x")
    known = tuple(int(each) for each in sides if each.isdigit() and len(each) <= _MOST_DIGITS)
    return Parameters({name: count for name, count in counts.items() if isinstance(count, int)}, known)


def empty_matrices(trace: HostTrace) -> dict[tuple[int, int], float]:
    """The sizes of which all large matrices of a host's program are nearly empty, with the share that is not zero."""
    found: dict[tuple[int, int], list[float]] = {}
    for name, text in capture_facts(trace).items():
        told = str(text).replace(",", "\t").split("\t")[1:] if name.startswith(_EMPTY) else []
        if len(told) == 3 and all(map(_is_count, told)):
            found.setdefault((int(told[0]), int(told[1])), []).append(int(told[2]) / 1000)
    return {size: max(shares) for size, shares in found.items()}


def _numbers_by_sides(trace: HostTrace, kind: str) -> dict[tuple[int, ...], int]:
    """What the facts of one kind say: `sides, a number`, by a tab."""
    found = dict[tuple[int, ...], int]()
    for name, text in capture_facts(trace).items():
        sides, _, number = str(text).partition("\t") if name.startswith(kind) else ("", "", "")
        told = (*sides.split(","), number)
        if all(map(_is_count, told)):
            found[tuple(map(int, told[:-1]))] = int(number)
    return found


def ignored_labels(trace: HostTrace) -> dict[tuple[int, ...], float]:
    """The sides of arrays of labels of a host's program, with the share of their labels that a loss ignores."""
    return {sides: ignored / 1000 for sides, ignored in _numbers_by_sides(trace, _IGNORED).items()}


def zero_gradients(trace: HostTrace) -> dict[tuple[int, ...], int]:
    """How many parameters of a host's program have a gradient of nothing but zeros, by their sides."""
    return _numbers_by_sides(trace, _ZERO)


def kept_arrays_of(trace: HostTrace) -> dict[tuple[int, ...], int]:
    """The sides of arrays that a host's program kept as they are while steps ran, where it had no others of these
    sides, with how many these are."""
    return _numbers_by_sides(trace, _SAME)


def kept_tensors_of(trace: HostTrace) -> dict[tuple[int, ...], int]:
    """The same for tensors of PyTorch."""
    return _numbers_by_sides(trace, _SAME_TENSORS)


@dataclass(frozen=True)
class PaddedBatch:
    """A batch whose rows are all filled up, as the capture read it: rows, their length, the longest and the mean one
    before."""

    rows: int
    length: int
    longest: int
    mean: int


def padded_batches(trace: HostTrace) -> list[PaddedBatch]:
    """The shapes of a host's batches of which all rows are filled up."""
    texts = [str(text) for name, text in capture_facts(trace).items() if name.startswith(_PADDED)]
    told = [text.replace(",", "\t").split("\t") for text in texts]
    known = [each for each in told if len(each) == 4 and all(map(_is_count, each))]
    return [PaddedBatch(*map(int, each)) for each in known]


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def graph_products(trace: HostTrace) -> dict[tuple[int, int], set[str]]:
    """The nodes of a host's graphs that multiply with large matrices that these are given, by the sizes of those."""
    found = {}
    for name, text in capture_facts(trace).items():
        sides = name.removeprefix(_TAKES).split(",") if name.startswith(_TAKES) else []
        if len(sides) == 2 and all(map(_is_count, sides)):
            found[int(sides[0]), int(sides[1])] = {*str(text).split("\n")}
    return found


def traced_graphs(trace: HostTrace) -> tuple[TracedGraph, ...]:
    """The graphs of a host's program, the largest first.  Damaged descriptions are left out."""
    texts = ((name, text) for name, text in capture_facts(trace).items() if name.startswith(_GRAPH))
    found = [_parse_graph(name.removeprefix(_GRAPH), text) for name, text in texts]
    return tuple(sorted(filter(None, found), key=lambda graph: (-graph.nodes, graph.name)))


def _parse_graph(name: str, text: object) -> TracedGraph | None:
    try:
        told = json.loads(str(text))
        types = {str(op): int(count) for op, count in told["types"].items()}
        layers = tuple(map(str, told["unused_layers"]))
        return TracedGraph(name, int(told["nodes"]), int(told["unused"]), types, layers)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
