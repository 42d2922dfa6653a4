"""Name and type of an op, of whatever sort the event is that stands for it."""

from __future__ import annotations

import re

from stepscope.analysis.top_ops import parse_op
from stepscope.model import EventKind

K = EventKind
_NAMESPACED = re.compile(r"(?:[A-Za-z_]\w*::)+(?P<last>[A-Za-z_]\w*)")
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
    """Name and type.

    >>> op_name("aiter::rmsnorm", EventKind.OP)
    ('aiter::rmsnorm', 'rmsnorm')
    >>> op_name("Iterator::Root::Map", EventKind.ITERATOR)
    ('Iterator::Root::Map', 'Dataset')
    """
    if kind == K.ITERATOR:
        return text.partition("#")[0], _TYPE_OF_KIND[kind]
    name, sort = parse_op(text, kind)
    if sort not in _UNTYPED:
        return name, sort
    found = _NAMESPACED.fullmatch(name)
    if kind == K.OP or kind.is_device:
        return name, found["last"] if found else sort
    return name, _TYPE_OF_KIND.get(kind, found["last"] if found else sort)
