"""Name and type of an op, from an event of any kind."""

from __future__ import annotations

import re

from stepscope.model import EventKind
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tensorflow import eager_op

K = EventKind
_NAMESPACED = Pattern(r"(?:[A-Za-z_]\w*::)+(?P<last>[A-Za-z_]\w*)")
# TensorFlow's name:Type and JAX's scope:primitive[parameters].
_TYPED = Pattern(r"(?P<name>[^:]+):(?P<type>[A-Za-z_]\w*)(?:\[.*\])?", re.DOTALL)
# By far the most frequent names.  The pattern above matches them too, but slower.
_TENSORFLOW = Pattern(r"([A-Za-z0-9.][\w./>-]*):(_?[A-Z]\w*)", re.ASCII)
_COPIES = {
    K.COPY_HOST_TO_DEVICE: "copy host to device",
    K.COPY_DEVICE_TO_HOST: "copy device to host",
    K.COPY_DEVICE_TO_DEVICE: "copy device to device",
    K.COPY_PEER: "copy between devices",
    K.COPY_OTHER: "copy",
    K.MEMSET: "memset",
}
_JOINTS = str.maketrans("", "", "_-.")
# A call of a communication library, `nccl:all_reduce`.  Types of TensorFlow's ops start with a capital.
_LIBRARY_CALL = Pattern(r"[a-z]+:[a-z_]\w*")
_UNTYPED = frozenset({"op", "kernel"})
_TYPE_OF_KIND = {
    K.ITERATOR: "Dataset",
    K.INPUT_WAIT: "input wait",
    K.BACKWARD: "backward",
    K.COLLECTIVE_CALL: "collective",
    K.TRACED_FUNCTION: "traced function",
    K.ANNOTATION: "annotation",
    K.EAGER_EXECUTE: "eager dispatch",
    K.COMPILE: "compilation",
}


def op_name(text: str, kind: EventKind) -> tuple[str, str]:
    """Name and type of an op, as tables show them.

    >>> op_name("aiter::rmsnorm", EventKind.OP)
    ('aiter::rmsnorm', 'rmsnorm')
    >>> op_name("Iterator::Root::Map", EventKind.ITERATOR)
    ('Iterator::Root::Map', 'Dataset')
    >>> op_name("EagerLocalExecute: ConcatV2", EventKind.EAGER_EXECUTE)
    ('ConcatV2', 'ConcatV2')
    >>> op_name("nccl:all_reduce", EventKind.COLLECTIVE_CALL)
    ('nccl:all_reduce', 'collective')
    """
    if kind == K.OP and (plain := _TENSORFLOW.fullmatch(text)):
        name, op_type = plain.groups()
        return name, op_type
    if kind == K.ITERATOR:
        return text.partition("#")[0], _TYPE_OF_KIND[kind]
    if kind == K.EAGER_EXECUTE and (eager := eager_op(text)):
        return eager, eager
    if kind == K.COLLECTIVE_CALL and _LIBRARY_CALL.fullmatch(text):
        return text, _TYPE_OF_KIND[kind]
    name, op_type = parse_op(text, kind)
    if op_type not in _UNTYPED:
        return name, op_type
    found = _NAMESPACED.fullmatch(name)
    last = found["last"] if found else op_type
    return name, last if kind == K.OP or kind.is_device else _TYPE_OF_KIND.get(kind, last)


def parse_op(text: str, kind: EventKind) -> tuple[str, str]:
    """Name and type of an op, as its text gives them: the type is "op" or "kernel" if the text has none.

    >>> parse_op("model/dense/MatMul:MatMul", EventKind.OP)
    ('model/dense/MatMul', 'MatMul')
    >>> parse_op("%copy-done.2 = f32[5,8]{1,0:T(8,128)} copy-done((f32[5,8], u32[]{:S(2)}) %x)", EventKind.DEVICE_OP)
    ('copy-done.2', 'copy-done')
    >>> parse_op("%copy-done.2 = f32[5,8]{1,0:T(8,128)} copy-done(%x)", EventKind.COPY_HOST_TO_DEVICE)
    ('copy-done.2', 'copy host to device')
    """
    text = text.partition("#")[0] or text  # older writers append facts as #key=value#
    if kind in _COPIES:
        name = text.partition(" = ")[0].lstrip("%") if text.startswith("%") else text.partition(":")[0]
        return name or text, _COPIES[kind]
    if kind == EventKind.COLLECTIVE:
        return text, "collective"
    if kind == EventKind.PYTHON_CALL:
        return text.lstrip("$"), "Python"
    if text.startswith("%"):  # a whole HLO instruction
        name, _, expression = text.partition(" = ")
        return name.lstrip("%"), _opcode(expression)
    if text.startswith("aten::"):
        return text, text.removeprefix("aten::")
    typed = _TYPED.fullmatch(text)
    if typed:
        return typed["name"], typed["type"]
    if len(text) > 1 and text.endswith(":"):  # TensorFlow's notation for a type that is the name's last part
        return text[:-1], re.sub(r"_\d+$", "", text[:-1].rpartition("/")[2])
    if kind == EventKind.OP or kind.is_device:
        return text, _type_from_name(text) or ("kernel" if kind.is_device else "op")
    return text, "op"


def _opcode(expression: str) -> str:
    """The opcode of `shape opcode(operands)`; a shape may hold spaces inside parentheses."""
    depth = 0
    for at, char in enumerate(expression):
        depth += (char in "({[") - (char in ")}]")
        if char == " " and not depth:
            return expression[at + 1 :].partition("(")[0].strip() or "op"
    return "op"


def _type_from_name(text: str) -> str:
    """The op type of a short name, which is the name without its number; empty for other names."""
    stem = text.rstrip("0123456789").rstrip("._")
    return stem if len(stem) <= 40 and stem.translate(_JOINTS).isalnum() else ""
