"""What an op is for, by its name in a graph or a program: scopes of TensorFlow and Keras, transforms of JAX."""

from __future__ import annotations

from functools import lru_cache

from stepscope.vocabulary.jax import is_backward
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.scopes import is_of_optimizer
from stepscope.vocabulary.traits import OpTrait

FORWARD, BACKWARD, UPDATE, LOSS, METRICS = "forward", "backward", "update", "loss", "metrics"

_LOSSES = Pattern(r"(?:.*/)?\w*(?:loss|cross_?entropy)\w*/")
_METRICS = Pattern(r"(?:.*/)?\w*(?:metric|accuracy)\w*/")
_DIFFERENTIATED = Pattern(r".*\bjvp\(")
_SCOPED = Pattern(r"[\w.>-]+/[\w./>-]+:\w+$")  # of TensorFlow: scopes, and the type of the op


def purpose_of_op(name: str) -> str:
    """What an op is for, by its name; empty where that does not say it.

    >>> purpose_of_op("jit(step)/transpose(jvp(loss_fn))/dot_general:"), purpose_of_op("jit(step)/jvp(loss_fn)/tanh:")
    ('backward', 'forward')
    >>> purpose_of_op("gradient_tape/net/dense/MatMul:MatMul"), purpose_of_op("net/dense/MatMul:MatMul")
    ('backward', 'forward')
    >>> purpose_of_op("Adam/mul:Mul"), purpose_of_op("compile_loss/sub:Sub"), purpose_of_op("jit(step)/mul:")
    ('update', 'loss', '')
    """
    return purpose_by_traits(name, name_has(name, OpTrait.OF_GRADIENT), name_has(name, OpTrait.WRITES_VARIABLE))


def purpose_by_traits(name: str, of_gradient: bool, writes_variable: bool) -> str:
    """The same for an op whose traits `OF_GRADIENT` and `WRITES_VARIABLE` are known."""
    if of_gradient or is_backward(name):
        return BACKWARD
    purpose = purpose_in_scopes(name[: name.rfind("/") + 1], writes_variable)
    if purpose:
        return purpose
    is_forward = ("jvp(" in name and _DIFFERENTIATED.match(name)) or _SCOPED.match(name)
    return FORWARD if is_forward else ""


def purpose_in_scopes(scopes: str, writes_variable: bool) -> str:
    """What an op of no gradient is for, by the scopes around it, up to their last slash; empty where they do not say
    it."""
    return UPDATE if writes_variable else _purpose_of_scopes(scopes)


@lru_cache(maxsize=8192)  # a program has fewer scopes, each around many ops
def _purpose_of_scopes(scopes: str) -> str:
    """What the scopes around an op, up to their last slash, say it is for."""
    if is_of_optimizer(scopes):
        return UPDATE
    # Looking for a word is much faster than the pattern, which few scopes match.
    if ("metric" in scopes or "accuracy" in scopes) and _METRICS.match(scopes):
        return METRICS
    return LOSS if ("loss" in scopes or "entropy" in scopes) and _LOSSES.match(scopes) else ""
