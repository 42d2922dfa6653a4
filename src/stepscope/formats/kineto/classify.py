"""Decides what every event is, from its category and name.

It knows Kineto's categories; the rules for names stand in the vocabulary.  The first that matches wins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

from stepscope.model import EventKind, Trait
from stepscope.vocabulary import devices, precision, torch
from stepscope.vocabulary.tables import KindRule

K = EventKind


class Place(IntEnum):
    """What sort of line an event belongs on."""

    THREAD = 0
    STREAM = 1
    SCOPE = 2  # an annotation, projected onto a stream
    WAIT = 3  # waits and marks that a stream's tools draw beside it
    OVERHEAD = 4
    SPAN = 5  # the profiler's own span
    COUNTER = 6
    NOWHERE = 7  # not an event of its own


_Rules = tuple[tuple[re.Pattern[str], EventKind, Trait], ...]


def _compiled(rules: Sequence[KindRule]) -> _Rules:
    return tuple((re.compile(pattern), kind, traits) for pattern, kind, traits in rules)


def _always(kind: EventKind) -> _Rules:
    return _compiled(((r"", kind, Trait.NONE),))


_OP_RULES = _compiled(torch.OP_KINDS)
_ANNOTATION_RULES = _compiled(torch.ANNOTATION_KINDS)
_PYTHON_RULES = _compiled(torch.PYTHON_KINDS)
_KERNEL_RULES = _compiled(torch.KERNEL_KINDS)
_OTHER_RULES = _compiled(torch.OTHER_KINDS)
_COPY_RULES = _compiled(devices.COPIES)
_RUNTIME_RULES = _compiled(devices.RUNTIME_CALLS)
_WAIT_RULES = _compiled(devices.WAITS)
_MEMSET_RULES, _SCOPE_RULES = _always(K.MEMSET), _always(K.SCOPE)
_OVERHEAD_RULES, _NO_RULES = _always(K.OVERHEAD), _always(K.OTHER)

# By category in lower case.  The short names are those of PyTorch 1.8 and 1.9.
_CATEGORIES: dict[str, tuple[Place, _Rules]] = {
    **dict.fromkeys(("cpu_op", "operator"), (Place.THREAD, _OP_RULES)),
    "user_annotation": (Place.THREAD, _ANNOTATION_RULES),
    **dict.fromkeys(("python_function", "python"), (Place.THREAD, _PYTHON_RULES)),
    "kernel": (Place.STREAM, _KERNEL_RULES),
    **dict.fromkeys(("gpu_memcpy", "memcpy"), (Place.STREAM, _COPY_RULES)),
    **dict.fromkeys(("gpu_memset", "memset"), (Place.STREAM, _MEMSET_RULES)),
    "gpu_user_annotation": (Place.SCOPE, _SCOPE_RULES),
    **dict.fromkeys(
        ("cuda_runtime", "cuda_driver", "runtime", "xpu_runtime", "xpu_driver", "mtia_runtime", "glow_runtime",
         "privateuse1_runtime", "privateuse1_driver"), (Place.THREAD, _RUNTIME_RULES)),
    **dict.fromkeys(("cuda_sync", "xpu_sync"), (Place.WAIT, _WAIT_RULES)),
    "cuda_event": (Place.WAIT, _NO_RULES),
    "overhead": (Place.OVERHEAD, _OVERHEAD_RULES),
    "trace": (Place.SPAN, _NO_RULES),
}  # fmt: skip
_ELSEWHERE = (Place.THREAD, _OTHER_RULES)

EXPORTED = "stepscope"
"""A category of all events that Stepscope exported."""

# Kernel names of template libraries have some thousand letters; patterns take too long on a hostile megabyte.
_LONGEST_NAME = 16_384


def is_pytorch(category: str) -> bool:
    """True for a category that only PyTorch's profiler writes."""
    return category.lower() in ("cpu_op", "cpu_instant_event", "python_function", "gpu_user_annotation", "cuda_runtime")


def is_op(category: str, kind: int) -> bool:
    """True for what device work names as its op: everything that the dispatcher ran, but for a step's mark."""
    return category.lower() in ("cpu_op", "operator") and kind != K.STEP_MARK


def _kind_told(category: str) -> EventKind | None:
    """The kind that a trace which Stepscope exported names in its categories, such as `kernel,stepscope`."""
    kind, comma, rest = category.partition(",")
    return EventKind.__members__.get(kind.upper()) if comma and rest == EXPORTED else None


def classify(category: str, name: str) -> tuple[Place, EventKind, Trait]:
    """Where an event belongs, what it is, and its traits, as far as its category and name tell."""
    told = _kind_told(category)
    if told is not None:
        return Place.THREAD, told, Trait.NONE
    place, rules = _CATEGORIES.get(category.lower(), _ELSEWHERE)
    name = name[:_LONGEST_NAME]
    if rules is _OTHER_RULES and name.startswith(torch.WINDOW_MARKS):
        return Place.NOWHERE, K.OTHER, Trait.NONE
    for pattern, kind, traits in rules:
        if pattern.match(name):
            return place, kind, traits
    return place, K.OTHER, Trait.NONE


def kernel_computes_16bit(name: str) -> bool | None:
    """Whether a kernel computes in 16 bits or fewer; None if its name does not tell."""
    return precision.kernel_computes_16bit(name[:_LONGEST_NAME])
