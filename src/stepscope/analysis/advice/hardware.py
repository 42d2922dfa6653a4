"""What an accelerator can do, by its name or compute capability."""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

_BEFORE_AMPERE = Pattern(
    r"(?i).*(?:\b(?:V100|P100|P40|P4|T4|T40|K80|K40|M40|M60|GTX|TITAN|RTX 20\d\d|Quadro RTX)\b"
    r"|V100|compute capability [3-7]\.)"
)


def has_bfloat16(device_type: str) -> bool:
    """Whether a device computes in bfloat16 and TensorFloat-32; true for an unknown one.

    >>> has_bfloat16("Tesla V100-SXM2-16GB"), has_bfloat16("NVIDIA GPU (Turing, compute capability 7.5)")
    (False, False)
    >>> has_bfloat16("NVIDIA H100 80GB HBM3"), has_bfloat16("")
    (True, True)
    """
    return _BEFORE_AMPERE.match(device_type) is None


def fit_actions(device_type: str, actions: tuple[str, ...]) -> tuple[str, ...]:
    """The actions that a device can follow: none that names a number format which it lacks."""
    if has_bfloat16(device_type):
        return actions
    return tuple(action for action in actions if not any(name in action for name in _FORMATS))


_FORMATS = ("bfloat16", "bf16", "TensorFloat-32", "tensorfloat32")
