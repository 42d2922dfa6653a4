"""Paths of ops in frameworks: `jit(step)/transpose(jvp(layer))/dot_general`, `gradient_tape/model/MatMul`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stepscope.vocabulary.patterns import Pattern

_CALL = Pattern(r"^(?P<what>[\w.]+)\((?P<inside>.*)\)$")
_TRANSFORMS = frozenset({"jvp", "transpose", "vmap", "remat", "checkpoint", "rematted_computation", "custom_vjp_call"})
_PROGRAM_WRAPPERS = frozenset({"jit", "pjit", "pmap", "xla_computation", "shard_map"})
_GRADIENT = Pattern(r"transpose\(|gradient_tape/|gradients/|/grad/")
_GRADIENT_OF = Pattern(
    r"(?P<around>(?:[^:]*/)??)(?:gradient_tape/(?P<tape>[^:]+)|gradients/(?P<old>[^:]+)_grad)/[^/:]+(?::\w+)?$"
)
_GRADIENT_OF_ONE = Pattern(r"Backprop|Grad(?:V\d)?$")
_FORWARD = Pattern(r"jvp\(")
_UPDATE = Pattern(r"optimizer|apply_updates|[Aa]dam|sgd|momentum|ResourceApply|update", re.ASCII)
_OPTIMIZER = Pattern(
    r"(?:.*/)?(?:sgd|n?adam\w*|rms_?prop|ada(?:grad|delta|factor|max)|ftrl|lamb|lion|muon|optimizer|optax)(?:_\d+)?/",
    re.IGNORECASE,
)
_WRAPPERS = frozenset({"gradient_tape", "gradients", "StatefulPartitionedCall"})
# What JAX and TensorFlow put into a path where a program loops, branches, calls or recomputes.
_CONTROL = Pattern(
    r"while|body|cond|scan|branch_\d+_fun|closed_call|core_call|custom_(?:jvp|vjp)_call|shard_map|pjit|checkpoint"
    r"|remat(?:2|ted_computation)?|(?:Stateful)?PartitionedCall|gradient_tape|gradients"
)
# TensorFlow names the transfer of an op's result `OP/_13`.
_NUMBERED = re.compile(r"(?:_\d+)+$", re.ASCII)  # of calls after the first one
_TRANSFER = Pattern(r"_\d+")
BACKWARD = "backward"
_PACKAGES = Pattern(r"/(?:site|dist)-packages/|/lib/python3")
_HOST_TRANSFER = Pattern(r":XlaSendToHost|:XlaRecvFromHost")
UNKNOWN = "unknown"


def is_gradient(op_name: str) -> bool:
    """True for an op of a gradient."""
    return _GRADIENT.search(op_name) is not None


def forward_of_gradient(op_name: str) -> str:
    """The forward op that a gradient of TensorFlow is called after; empty where its name does not say.

    >>> forward_of_gradient("call/gradient_tape/net/MatMul/MatMul_1:MatMul"), forward_of_gradient("net/MatMul:MatMul")
    ('call/net/MatMul', '')
    >>> forward_of_gradient("gradients/net/MatMul_grad/MatMul:MatMul")
    'net/MatMul'
    """
    found = _GRADIENT_OF.match(op_name) if "gradient" in op_name else None  # most ops are of no gradient
    return f"{found['around'] or ''}{found['tape'] or found['old']}" if found else ""


def is_gradient_of_one(op: str) -> bool:
    """True for an op that computes the gradient of one operand of one op of TensorFlow, by its type.

    >>> is_gradient_of_one("_MklNativeConv2DBackpropFilter"), is_gradient_of_one("MatMul")
    (True, False)
    """
    return _GRADIENT_OF_ONE.search(op) is not None


def is_gradient_of_all(op: str) -> bool:
    """True for an op of TensorFlow that computes a gradient for all rows of a Jacobian at once.

    >>> is_gradient_of_all("gradient_tape/net/MatMul/MatMul/pfor/MatMul"), is_gradient_of_all("loop_body/x/pfor/MatMul")
    (True, False)
    """
    return op.startswith("gradient_tape/") and "/pfor/" in op


def scope_of_other_call(op_name: str, other: str) -> str:
    """The scopes up to the call of a model or layer by which an op differs from another one in nothing but its number,
    as of layers that are called twice; empty if they differ in more, or if no layer lies within that call.

    >>> scope_of_other_call("call/net_3/conv/Relu:Conv", "call/net_1/conv/Relu:Conv")
    'call/net_3/'
    >>> scope_of_other_call("dense_1/Relu", "dense_2/Relu"), scope_of_other_call("a/conv/Relu", "b/conv/Relu")
    ('', '')
    """
    parts, others = op_name.split("/"), other.split("/")
    differs = [at for at, pair in enumerate(zip(parts, others, strict=False)) if pair[0] != pair[1]]
    if len(parts) != len(others) or len(differs) != 1 or differs[0] > len(parts) - 3:
        return ""
    at = differs[0]
    same = _NUMBERED.sub("", parts[at]) == _NUMBERED.sub("", others[at])
    return "/".join(parts[: at + 1]) + "/" if same else ""


def is_of_optimizer(op_name: str) -> bool:
    """True for an op in the scope of an optimizer.

    >>> is_of_optimizer("adam/AssignSubVariableOp"), is_of_optimizer("model/lamb_wool/MatMul")
    (True, False)
    """
    return _OPTIMIZER.match(op_name) is not None


def layer_of(op_name: str) -> str:
    """The scopes of a layer around an op of TensorFlow, empty without one.

    >>> layer_of("gradient_tape/sequential/conv2d/Conv2DBackpropInput"), layer_of("MatMul")
    ('sequential/conv2d', '')
    """
    return "/".join(scope for scope in op_name.split("/")[:-1] if scope not in _WRAPPERS)


def phase_of(op_name: str, is_trained: bool, any_trained: bool) -> str:
    """The part of training that an op belongs to, by the path of its name.

    Args:
        op_name: the op's path in the framework.
        is_trained: its program computes a gradient.
        any_trained: some program of the capture computes a gradient.

    >>> phase_of("jit(step)/transpose(jvp(layer))/dot_general", True, True)
    'backward'
    """
    if not op_name:
        return UNKNOWN
    if _GRADIENT.search(op_name):
        return "backward"
    if _FORWARD.search(op_name):
        return "forward"
    if is_trained:
        return "update" if _UPDATE.search(op_name) else "update and others"
    return "evaluation and others" if any_trained else "computation"


def scopes_of(op_name: str) -> list[str]:
    """The scopes of an op and its own name, without the transformations around them.

    >>> scopes_of("jit(step)/transpose(jvp(layer))/while/body/dot_general")
    ['layer', 'while', 'body', 'dot_general']
    """
    found = []
    for part in _split_path(op_name):
        while (match := _CALL.match(part)) and match["what"] in _TRANSFORMS:
            part = match["inside"]
        if part and not (match and match["what"] in _PROGRAM_WRAPPERS):
            found.append(part)
    return found or [op_name]


def named_scopes(op_name: str) -> tuple[str, ...]:
    """The scopes that the program names around an op, the outermost first; those of a gradient are inside `backward`.

    >>> named_scopes("jit(step)/transpose(jvp(encoder))/while/body/layer_1/dot_general")
    ('backward', 'encoder', 'layer_1')
    >>> named_scopes("gradient_tape/model/dense/MatMul/_13"), named_scopes("jit(step)/dot_general")
    (('backward', 'model', 'dense'), ())
    """
    *scopes, last = scopes_of(op_name)
    if _TRANSFER.fullmatch(last):
        scopes = scopes[:-1]
    named = tuple(scope for scope in scopes if not _CONTROL.fullmatch(scope))
    return (BACKWARD, *named) if is_gradient(op_name) else named


def _split_path(path: str) -> Iterator[str]:
    """The parts of a path; a slash inside parentheses does not separate parts."""
    depth = start = 0
    for at, letter in enumerate(path):
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth <= 0:
            yield path[start:at]
            start = at + 1
    yield path[start:]


def is_in_package(line: str) -> bool:
    """True for a source line of an installed package, as opposed to the user's program."""
    return _PACKAGES.search(line) is not None


def is_host_transfer(op_name: str) -> bool:
    """True for an op that transfers data to or from the host in the middle of a program."""
    return _HOST_TRANSFER.search(op_name) is not None


def is_rematerialized(instruction: str, op_name: str) -> bool:
    """True for an instruction that recomputes a value that was discarded to save memory."""
    return ".remat" in instruction or "rematted_computation" in op_name
