"""Ranges that a program names: told from what runtimes record on the same threads, by how they are written.

TensorFlow and JAX record a range of the program (`TraceAnnotation("load batch")`) like their own work, under its name
alone.  Their own work is written `Class::Method`, `CamelCase`, `Call(argument)` or `path:Op`, with a few exceptions.
"""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import NameTable
from stepscope.vocabulary.traits import RangeTrait

_OWN_WORK = (
    "tf.constant", "convert_to_tensor", "shard_args", "trace_to_jaxpr_dynamic",
    "batched_copy_array_to_devices_with_sharding", "cpp_pjit_shard_arg_fallback",
)  # fmt: skip

NAMES: tuple[NameTable, ...] = (
    NameTable(
        exact=dict.fromkeys(_OWN_WORK, RangeTrait.OF_RUNTIME), rules=((RangeTrait.OF_RUNTIME, r"(?![a-z][\w.\-/ ]*$)"),)
    ),
)

_NO_DIGITS = str.maketrans("", "", "0123456789")
# Ops such as `BatchNormalization`, `BatchMatMul` and `batch_to_space` speak of what a batch goes through.
_STEP = Pattern(r"(?i).*(?:step|iter|batch(?!ed|_?(?:norm|mat|mm|to)))")
_PART = Pattern(r".*?[A-Za-z_]\w*\.\d+(?![\w])")  # `blocks.3`, as frameworks number what a model is built of
_EVALUATION = Pattern(r"(?i)(?:.*[\W_])?(?:eval|valid|val(?![a-z])|test|predict|infer|metric)")


def without_numbers(name: str) -> str:
    """A mark's name without what differs from step to step.

    >>> without_numbers("ProfilerStep#12"), without_numbers("train 3"), without_numbers("7")
    ('ProfilerStep', 'train', 'step')
    """
    return name.translate(_NO_DIGITS).rstrip("#_-:. ") or "step"


def says_step(name: str) -> bool:
    """Whether the name of a range speaks of a step, an iteration or a batch."""
    return _STEP.match(name) is not None


def numbered_part(name: str) -> str | None:
    """A range's name without its numbers, if it names a numbered part of a model; None for other names.

    >>> numbered_part("FSDP::pre_forward (blocks.3.mlp)"), numbered_part("step.3"), numbered_part("aten::mm")
    ('FSDP::pre_forward (blocks..mlp)', None, None)
    """
    return without_numbers(name) if _PART.match(name) is not None and not says_step(name) else None


def says_evaluation(name: str) -> bool:
    """Whether the name of a range says that nothing is trained in it.

    >>> [says_evaluation(name) for name in ("eval", "model/validate", "train", "medieval")]
    [True, True, False, False]
    """
    return _EVALUATION.match(name) is not None
