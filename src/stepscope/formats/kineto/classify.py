"""Decides the kind of each event from its category and name.

This module knows Kineto's categories; the rules for names are in the vocabulary.  The first rule that matches wins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

from stepscope.model import EventKind, Trait
from stepscope.vocabulary import devices, precision, tf_data, torch
from stepscope.vocabulary.tables import KindRule

K = EventKind


class LineType(IntEnum):
    """The type of line that an event belongs on."""

    THREAD = 0
    STREAM = 1
    SCOPE = 2  # an annotation, projected onto a stream
    WAIT = 3  # waits and marks that belong to a stream but are drawn on another line
    OVERHEAD = 4
    SPAN = 5  # the profiler's own span
    COUNTER = 6
    NOWHERE = 7  # not an event


_Rules = tuple[tuple[re.Pattern[str], EventKind, Trait], ...]


def _compile_rules(rules: Sequence[KindRule]) -> _Rules:
    return tuple((re.compile(pattern), kind, traits) for pattern, kind, traits in rules)


def _rules_for_any_name(kind: EventKind) -> _Rules:
    return _compile_rules(((r"", kind, Trait.NONE),))


_OP_RULES = _compile_rules(torch.OP_KINDS)
_ANNOTATION_RULES = _compile_rules(torch.ANNOTATION_KINDS)
_PYTHON_RULES = _compile_rules(torch.PYTHON_KINDS)
_KERNEL_RULES = _compile_rules(torch.KERNEL_KINDS)
_OTHER_RULES = _compile_rules(torch.OTHER_KINDS)
_COPY_RULES = _compile_rules(devices.COPIES)
_RUNTIME_RULES = _compile_rules(devices.RUNTIME_CALLS)
_WAIT_RULES = _compile_rules(devices.WAITS)
_MEMSET_RULES, _SCOPE_RULES = _rules_for_any_name(K.MEMSET), _rules_for_any_name(K.SCOPE)
_OVERHEAD_RULES, _NO_RULES = _rules_for_any_name(K.OVERHEAD), _rules_for_any_name(K.OTHER)

# Categories that `processes` gives to rows which have none.
NPU_TASK, NPU_COLLECTIVE, NPU_WAIT, SUMS = "npu_task", "npu_collective", "npu_wait", "sums"
TF1_OP, TF1_DISPATCH = "tensorflow 1 op", "tensorflow 1 dispatch"
_NPU_RULES = _compile_rules((*devices.NPU_TASKS, *torch.KERNEL_KINDS))
_COLLECTIVE_RULES = _rules_for_any_name(K.COLLECTIVE)
_TF1_RULES = (*_compile_rules(tf_data.SESSION_KINDS), *_rules_for_any_name(K.OP))

# By category in lower case.  PyTorch 1.8 and 1.9 use the short names.
_CATEGORIES: dict[str, tuple[LineType, _Rules]] = {
    **dict.fromkeys(("cpu_op", "operator"), (LineType.THREAD, _OP_RULES)),
    "user_annotation": (LineType.THREAD, _ANNOTATION_RULES),
    **dict.fromkeys(("python_function", "python"), (LineType.THREAD, _PYTHON_RULES)),
    "kernel": (LineType.STREAM, _KERNEL_RULES),
    "mtia_ccp_events": (LineType.STREAM, _compile_rules((*devices.MTIA_EVENTS, *torch.KERNEL_KINDS))),
    **dict.fromkeys(("gpu_memcpy", "memcpy"), (LineType.STREAM, _COPY_RULES)),
    **dict.fromkeys(("gpu_memset", "memset"), (LineType.STREAM, _MEMSET_RULES)),
    # Counters that CUPTI measured of each kernel, laid end to end in equal parts of the window: no times of their own.
    "cuda_profiler_range": (LineType.NOWHERE, _NO_RULES),
    "gpu_user_annotation": (LineType.SCOPE, _SCOPE_RULES),
    **dict.fromkeys(
        ("cuda_runtime", "cuda_driver", "runtime", "xpu_runtime", "xpu_driver", "mtia_runtime", "glow_runtime",
         "privateuse1_runtime", "privateuse1_driver"), (LineType.THREAD, _RUNTIME_RULES)),
    **dict.fromkeys(("cuda_sync", "xpu_sync"), (LineType.WAIT, _WAIT_RULES)),
    "cuda_event": (LineType.WAIT, _NO_RULES),
    "overhead": (LineType.OVERHEAD, _OVERHEAD_RULES),
    "trace": (LineType.SPAN, _NO_RULES),
    NPU_TASK: (LineType.STREAM, _NPU_RULES),
    NPU_COLLECTIVE: (LineType.STREAM, _COLLECTIVE_RULES),
    NPU_WAIT: (LineType.WAIT, _NO_RULES),
    TF1_OP: (LineType.THREAD, _TF1_RULES),
    TF1_DISPATCH: (LineType.THREAD, _rules_for_any_name(K.OP)),
    SUMS: (LineType.NOWHERE, _NO_RULES),
}  # fmt: skip
_DEVICES = (("mtia_", "MTIA"), ("npu_", "NPU"))
_ELSEWHERE = (LineType.THREAD, _OTHER_RULES)

EXPORTED = "stepscope"
"""The category that marks all events exported by Stepscope."""

# Kernel names of template libraries have thousands of characters; patterns take too long on a hostile megabyte.
_LONGEST_NAME = 16_384


def is_pytorch(category: str) -> bool:
    """True for a category that only PyTorch's profiler writes."""
    return category.lower() in ("cpu_op", "cpu_instant_event", "python_function", "gpu_user_annotation", "cuda_runtime")


def device_of(category: str) -> str:
    """What the device is called whose work has this category, as in the names of planes."""
    return next((name for prefix, name in _DEVICES if category.lower().startswith(prefix)), "GPU")


def is_known(category: str) -> bool:
    """True for a category that says what kind of event it is."""
    return category.lower() in _CATEGORIES or is_exported(category)


def is_exported(category: str) -> bool:
    """True for the category of an event that Stepscope exported."""
    return _exported_kind(category) is not None


def place_of(category: str) -> LineType:
    """The type of line that events of a category belong on."""
    return _CATEGORIES.get(category.lower(), _ELSEWHERE)[0]


def is_op_category(category: str) -> bool:
    """True for the category of what the dispatcher ran."""
    return category.lower() in ("cpu_op", "operator", TF1_OP, TF1_DISPATCH)


def is_op(category: str, kind: int) -> bool:
    """True for ops that device work can refer to: everything that the dispatcher ran, except step marks."""
    return is_op_category(category) and kind != K.STEP_MARK


def _exported_kind(category: str) -> EventKind | None:
    """The kind in a category that Stepscope exported, such as `kernel,stepscope`; None for other categories."""
    kind, comma, rest = category.partition(",")
    return EventKind.__members__.get(kind.upper()) if comma and rest == EXPORTED else None


def classify(category: str, name: str) -> tuple[LineType, EventKind, Trait]:
    """The type of line, the kind and the traits of an event, according to its category and name."""
    exported = _exported_kind(category)
    if exported is not None:
        return LineType.THREAD, exported, Trait.NONE
    place, rules = _CATEGORIES.get(category.lower(), _ELSEWHERE)
    name = name[:_LONGEST_NAME]
    if rules is _OTHER_RULES and name.startswith(torch.WINDOW_MARKS):
        return LineType.NOWHERE, K.OTHER, Trait.NONE
    for pattern, kind, traits in rules:
        if pattern.match(name):
            return place, kind, traits
    return place, K.OTHER, Trait.NONE


def kernel_computes_16bit(name: str) -> bool | None:
    """Whether a kernel computes in 16 bits or fewer; None if its name does not show it."""
    return precision.kernel_computes_16bit(name[:_LONGEST_NAME])
