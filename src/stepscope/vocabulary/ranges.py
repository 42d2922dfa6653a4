"""Ranges that a program names: told from what runtimes record on the same threads, by how they are written.

TensorFlow and JAX record a range of the program (`TraceAnnotation("load batch")`) like their own work, under its name
alone.  Their own work is written `Class::Method`, `CamelCase`, `Call(argument)` or `path:Op`, with a few exceptions.
"""

from __future__ import annotations

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
