"""What a capture writes down about the program beside its events.

Cores, threads for ops, graphs that it has traced, types and sizes of the parameters that it trains: no event shows any
of these, and advice about threads, types, tables and unused layers needs them.  Nothing is imported or set up for it: a
framework that the program does not use says nothing, and one that fails to answer is left out.
"""

from __future__ import annotations

import json
import re
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from stepscope.formats.threads import usable_cores
from stepscope.records import dataclass

CORES, THREADS, GRAPH, TAKES = "cores", "op_threads", "graph:", "takes:"
PARAMETERS, LARGEST = "parameters:", "largest_parameter"  # numbers of a type; the sides of the largest, as `60000x64`
_MOST_OPTIMIZERS = 16
_MOST_GRAPHS, _MOST_NODES, _MOST_TYPES, _MOST_LAYERS = 20, 200_000, 12, 20
_LARGE, _MOST_TAKING = 1 << 16, 50  # numbers of a matrix, and nodes that take one of some size
_FEWEST_NODES = 4  # a smaller function is one op with its arguments
_TRACED = re.compile(r"__inference_(?P<name>.+)_\d+")
_COMPUTES_LAYER = re.compile(r"(?:MatMul|BatchMatMul(?:V\d)?|Einsum|Conv\dD|DepthwiseConv2dNative)$")
_OF_GRADIENT = "gradient"  # in the names of nodes that compute gradients


_optimizers: dict[object, Callable[[], Any]] = {}


def note_optimizer(key: object, optimizer: object) -> None:
    """Has the parameters described of an optimizer of PyTorch that steps; it is not kept alive."""
    if len(_optimizers) < _MOST_OPTIMIZERS:
        with suppress(TypeError):
            _optimizers[key] = weakref.ref(optimizer)


def collect_program_facts() -> dict[str, int | str]:
    """The facts, as stats of the capture's plane."""
    found: dict[str, int | str] = {CORES: usable_cores()}
    readers: tuple[Callable[[], Mapping[str, int | str]], ...] = (_read_torch, _read_tensorflow)
    for read in readers:
        try:
            found |= read()
        except Exception:  # a release of the framework that answers differently
            continue
    return found


def _read_torch() -> Mapping[str, int | str]:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return {}
    with torch._C.DisableTorchFunctionSubclass():  # no code of the program runs
        return {THREADS: int(torch.get_num_threads())} | _describe_parameters()


def _describe_parameters() -> dict[str, int | str]:
    numbers, largest = Counter[str](), (0, "")
    for optimizer in [each() for each in list(_optimizers.values())]:
        for group in getattr(optimizer, "param_groups", ()):
            for each in group["params"]:
                count = int(each.numel())
                numbers[f"{PARAMETERS}{str(each.dtype).removeprefix('torch.')}"] += count
                largest = max(largest, (count, "x".join(map(str, each.shape))))
    return dict(numbers) | ({LARGEST: largest[1]} if largest[1] else {})


def _read_tensorflow() -> Mapping[str, int | str]:
    """Threads for the parts of one op, if the program limits them, what graphs hold, and who takes large matrices."""
    home: Any = sys.modules.get("tensorflow.python.eager.context")
    context = home.context() if home is not None else None
    if context is None or getattr(context, "_context_handle", None) is None:
        return {}
    threads = int(context.intra_op_parallelism_threads or 0)
    limit: dict[str, int | str] = {THREADS: threads} if threads else {}
    graphs = sorted(_read_graphs(context), key=lambda graph: -graph.nodes)
    largest = {graph.name: graph for graph in reversed(graphs)}  # of several traces of a function
    kept = sorted(largest.values(), key=lambda graph: -graph.nodes)[:_MOST_GRAPHS]
    takes: dict[str, set[str]] = {}
    for graph in graphs:
        for node, sides in graph.takes.items():
            takes.setdefault(f"{TAKES}{sides}", set()).add(node)
    return (
        limit
        | {f"{GRAPH}{graph.name}": graph.to_json() for graph in kept}
        | {name: "\n".join(sorted(nodes)[:_MOST_TAKING]) for name, nodes in takes.items()}
    )


@dataclass(frozen=True)
class GraphFacts:
    """What a traced function holds.

    Attributes:
        nodes: number of nodes; `unused`: how many of them nothing depends on.
        types: op type -> number of nodes, the most frequent ones.
        unused_layers: scopes of unused nodes that compute what a layer computes.
        takes: node that multiplies -> sides of the large matrix that it takes as an argument, as `2000,3000`.
    """

    name: str
    nodes: int
    unused: int
    types: dict[str, int]
    unused_layers: list[str]
    takes: dict[str, str]

    def to_json(self) -> str:
        """The facts as the text of a stat."""
        return json.dumps({
            "nodes": self.nodes, "unused": self.unused, "types": self.types, "unused_layers": self.unused_layers,
        })  # fmt: skip


def _read_graphs(context: Any) -> Iterator[GraphFacts]:
    left = _MOST_NODES
    for name in context.list_function_names():
        text = name.decode() if isinstance(name, bytes) else str(name)
        traced = _TRACED.fullmatch(text)
        if traced is None or left <= 0:
            continue
        function = context.get_function_def(text)
        left -= len(function.node_def)
        if len(function.node_def) >= _FEWEST_NODES:
            yield examine_graph(traced["name"], function)


def examine_graph(name: str, function: Any) -> GraphFacts:
    """What a function's definition holds; it has TensorFlow's `node_def`, `ret` and `control_ret`."""
    nodes = {node.name: node for node in function.node_def}
    roots = [*function.ret.values(), *function.control_ret.values()]
    used = _reachable({name: node.input for name, node in nodes.items()}, roots)
    unused = [node for name, node in nodes.items() if name not in used]
    layers = dict.fromkeys(
        node.name.rpartition("/")[0] or node.name
        for node in unused
        if _COMPUTES_LAYER.match(node.op) and _OF_GRADIENT not in node.name
    )
    types = Counter(node.op for node in nodes.values()).most_common(_MOST_TYPES)
    return GraphFacts(
        name,
        len(nodes),
        len(unused),
        dict(types),
        [*layers][:_MOST_LAYERS],
        dict(_find_taking(function, nodes.values())),
    )


def _find_taking(function: Any, nodes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """The nodes that multiply with a large matrix that a function is given, each with the sides of that."""
    sides = {}
    for number, argument in enumerate(function.signature.input_arg):
        shapes = function.arg_attr[number].attr["_output_shapes"].list.shape if number in function.arg_attr else ()
        found = [int(side.size) for shape in shapes for side in shape.dim]
        if len(found) == 2 and min(found) > 0 and found[0] * found[1] >= _LARGE:
            sides[argument.name] = ",".join(map(str, found))
    for node in nodes if sides else ():
        taken = [sides[each] for each in node.input if each in sides] if _COMPUTES_LAYER.match(node.op) else []
        if taken:
            yield node.name, taken[0]


def _reachable(inputs: Mapping[str, Iterable[str]], roots: Iterable[str]) -> set[str]:
    """The nodes on which the roots depend.  An input is `node:output:number`, or `^node` for order alone."""
    found: set[str] = set()
    open_ends = list(roots)
    while open_ends:
        name = open_ends.pop().removeprefix("^").partition(":")[0]
        if name in inputs and name not in found:
            found.add(name)
            open_ends += inputs[name]
    return found
