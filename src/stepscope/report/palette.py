"""The one declaration of colours, which page, report, notebook and pictures share.

The colours are the same in both themes.  Any two stay apart for normal, red-blind, green-blind and blue-blind eyes, and
all stand out from a white and from a dark page; the page's tests measure it.  Red is not among them: red means trouble.
"""

from __future__ import annotations

CATEGORY_COLOURS: dict[str, str] = {
    "compilation": "#e5af02",
    "output": "#677303",
    "input": "#df8543",
    "kernel_launch": "#731cad",
    "host_compute": "#67bfb4",
    "device_collectives": "#ad4896",
    "device_to_device": "#8f3150",
    "device_compute": "#2f65ed",
    "other": "#908c85",
}
"""Of the categories of a step, in the order in which they are stacked."""

CATEGORY_LABELS: dict[str, str] = {
    "compilation": "Compilation",
    "output": "Output",
    "input": "Input",
    "kernel_launch": "Kernel launch",
    "host_compute": "Host compute",
    "device_collectives": "Collectives",
    "device_to_device": "Device to device",
    "device_compute": "Device compute",
    "other": "Other",
}

_PYTHON, _CONTENTION = "#c084fc", "#185400"

CAUSE_COLOURS: dict[str, tuple[str, bool]] = {
    "input": (CATEGORY_COLOURS["input"], False),
    "transfer": (CATEGORY_COLOURS["device_to_device"], True),
    "python": (_PYTHON, False),
    "host_compute": (CATEGORY_COLOURS["host_compute"], False),
    "launch": (CATEGORY_COLOURS["kernel_launch"], False),
    "device_compute": (CATEGORY_COLOURS["device_compute"], False),
    "device_gap": (CATEGORY_COLOURS["device_compute"], True),
    "copy": (CATEGORY_COLOURS["device_to_device"], False),
    "communication": (CATEGORY_COLOURS["device_collectives"], False),
    "compile": (CATEGORY_COLOURS["compilation"], False),
    "sync": (CATEGORY_COLOURS["output"], False),
    "checkpoint": (CATEGORY_COLOURS["output"], True),
    "contention": (_CONTENTION, False),
    "unknown": (CATEGORY_COLOURS["other"], True),
}
"""Of the causes in the account of a step, in the order in which they are stacked, and whether it is made lighter."""

MEMORY_COLOURS: dict[str, str] = {
    "parameters": CATEGORY_COLOURS["device_compute"],
    "gradients": CATEGORY_COLOURS["device_collectives"],
    "optimizer_state": CATEGORY_COLOURS["compilation"],
    "activations": CATEGORY_COLOURS["host_compute"],
    "input_batches": CATEGORY_COLOURS["input"],
    "temporary": CATEGORY_COLOURS["kernel_launch"],
    "compiled_programs": CATEGORY_COLOURS["device_to_device"],
    "kept_over_steps": CATEGORY_COLOURS["output"],
}
"""Of what memory is for; what is not known is grey."""

KIND_CATEGORIES: dict[str, str] = {
    **dict.fromkeys(("op", "executor", "function_run", "eager_execute", "traced_function", "backward"), "host_compute"),
    **dict.fromkeys(("input_wait", "iterator", "input_handover", "input_callback", "infeed"), "input"),
    **dict.fromkeys(
        (
            *("copy_host_to_device_call", "copy_host_to_device", "copy_device_to_host", "copy_device_to_device"),
            *("copy_peer", "copy_host_to_host", "copy_other", "memset"),
        ),
        "device_to_device",
    ),
    "runtime_call": "kernel_launch",
    "compile": "compilation",
    **dict.fromkeys(("checkpoint", "outfeed", "sync"), "output"),
    **dict.fromkeys(("collective_call", "collective"), "device_collectives"),
    **dict.fromkeys(("kernel", "device_op", "graph_launch", "module"), "device_compute"),
    **dict.fromkeys(("overhead", "allocation", "deallocation"), "other"),
}
"""The category of each kind of event; others have hues of their own."""


def share_colour(key: str) -> str:
    """The colour of a cause or of a purpose of memory on a white page; grey for anything else."""
    return cause_colour(key) or MEMORY_COLOURS.get(key) or CATEGORY_COLOURS["other"]


def cause_colour(cause: str) -> str | None:
    """The colour of a cause on a white page; None for what is no cause."""
    known = CAUSE_COLOURS.get(cause)
    return None if known is None else _lighter(known[0]) if known[1] else known[0]


def _lighter(colour: str) -> str:
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{(part + 255) // 2:02x}" for part in parts)
