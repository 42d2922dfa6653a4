"""Reads what Triton's Proton writes by default (`*.hatchet`): a tree of scopes whose leaves are kernels.

    profile = [node, ..., {"CUDA": {"0": {"arch", "num_sms", ...}}}]
    node    = {"frame": {"name"}, "metrics": {"time (ns)", "count", "device_id", "device_type"}, "children": [node]}

It holds sums and no times.  Kernels are laid out one after the other in the order of the tree, each as long as the mean
of its calls: shares and counts are those of the file, and nothing can be said of gaps, order and steps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from stepscope.errors import Problem, UnreadableError
from stepscope.model import EventKind, HostTrace, LineBuilder, LineKind, PlaneKind, StatValue, TraceBuilder
from stepscope.model.stat_names import FRAMEWORK_OP
from stepscope.records import dataclass
from stepscope.vocabulary import torch
from stepscope.vocabulary.tables import KindRule

_TIME, _COUNT, _DEVICE, _KIND = "time (ns)", "count", "device_id", "device_type"
_ROOT = "ROOT"
_HINT = "give a file that triton.profiler (Proton) wrote"
_FACTS = {"num_sms": "core_count", "clock_rate": "clock_rate"}
_VENDORS = {"CUDA": "Nvidia", "HIP": "AMD"}
_MOST_EVENTS = 1_000_000  # of a profile; a kernel with more calls than its share becomes one event
_DEEPEST = 500
_LONGEST_NS = 1 << 50
_PS_PER_NS = 1000


@dataclass(frozen=True)
class _Leaf:
    """A kernel with its path of scopes."""

    path: str
    name: str
    device: int
    kind: str
    count: int
    ns: int


def read(data: bytes, source: str, host: str) -> HostTrace:
    """Reads one profile.

    Raises:
        UnreadableError: it is not a tree of Proton, or holds no kernel with a time.
    """
    leaves = list(_leaves_of(_load(data, source)))
    if not leaves:
        raise UnreadableError(
            "no kernel of this profile has a time", code="no-events", path=source, lost="everything", hint=_HINT
        )
    builder = TraceBuilder(host or "localhost")
    builder.source = source
    builder.plane("/host:CPU", PlaneKind.HOST)
    facts = _facts_of(_load(data, source))
    lines: dict[int, LineBuilder] = {}
    ends: dict[int, int] = {}
    whole = sum(leaf.count for leaf in leaves) > _MOST_EVENTS
    for leaf in leaves:
        if leaf.device not in lines:
            plane = builder.plane(
                f"/device:GPU:{leaf.device}", PlaneKind.GPU, leaf.device, stats=facts.get((leaf.kind, leaf.device), {})
            )
            lines[leaf.device] = builder.line(plane, "Stream #0(Compute)", kind=LineKind.STREAM)
        calls = 1 if whole else leaf.count
        each, start = leaf.ns * _PS_PER_NS // calls, ends.get(leaf.device, 0)
        kind = _kind_of(leaf.name)
        stats: dict[str, StatValue] = {FRAMEWORK_OP[0]: leaf.path} if leaf.path else {}
        for call in range(calls):
            lines[leaf.device].event(leaf.name, start + call * each, each, kind, stats)
        ends[leaf.device] = start + calls * each
    builder.problems.append(
        Problem(
            "no-times",
            "Proton adds up the kernels of each path: when each of them ran was not recorded",
            path=source,
            kept="their time and number" if not whole else "their time; there are too many to show each",
            lost="steps, gaps, and what ran at the same time; they are drawn one after the other",
            hint="to see these as well, record with torch.profiler",
        )
    )
    return builder.build()


def _load(data: bytes, source: str) -> list[Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = f"the JSON cannot be read: {error}"
        raise UnreadableError(reason, code="json", path=source, lost="everything", hint=_HINT) from error
    if not isinstance(found, list):
        raise UnreadableError("this is no profile of Proton", code="unknown-format", path=source, hint=_HINT)
    return found


def _leaves_of(profile: list[Any]) -> Iterator[_Leaf]:
    """The kernels of all trees, in their order."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(node, ()) for node in reversed(profile)]
    while waiting:
        node, path = waiting.pop()
        if not isinstance(node, dict) or "frame" not in node or len(path) > _DEEPEST:
            continue
        name = str(_mapping(node["frame"]).get("name") or "unknown")
        metrics, children = _mapping(node.get("metrics")), node.get("children")
        ns, count = _number(metrics.get(_TIME)), max(_number(metrics.get(_COUNT)), 1)
        if ns:
            device = min(_number(metrics.get(_DEVICE)), 1 << 15)
            yield _Leaf("/".join(path), name, device, str(metrics.get(_KIND) or ""), count, ns)
        below = path if name == _ROOT and not path else (*path, name)
        waiting += [(child, below) for child in reversed(children if isinstance(children, list) else [])]


def _facts_of(profile: list[Any]) -> dict[tuple[str, int], dict[str, StatValue]]:
    """What is known of each device, by its kind and number."""
    found: dict[tuple[str, int], dict[str, StatValue]] = {}
    for part in profile:
        for kind, devices in _mapping(part).items():
            for number, facts in _mapping(devices).items():
                if kind in _VENDORS and str(number).isdecimal():
                    named = {_FACTS[key]: value for key, value in _mapping(facts).items() if key in _FACTS}
                    numbers: dict[str, StatValue] = {key: _number(value) for key, value in named.items()}
                    found[kind, int(number)] = {"device_vendor": _VENDORS[kind], **numbers}
    return found


def _kind_of(name: str) -> EventKind:
    rules: tuple[KindRule, ...] = torch.KERNEL_KINDS
    return next((kind for pattern, kind, _ in rules if re.match(pattern, name)), EventKind.KERNEL)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int:
    """A number that is not negative, also as text; 0 for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        return min(int(value), _LONGEST_NS)
    if isinstance(value, int | float) and 0 <= value < _LONGEST_NS:
        return int(value)
    return 0
