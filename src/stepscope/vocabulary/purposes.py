"""What an op is for, by its name in a graph or a program: scopes of TensorFlow and Keras, transforms of JAX."""

from __future__ import annotations

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
    if is_backward(name) or name_has(name, OpTrait.OF_GRADIENT):
        return BACKWARD
    if is_of_optimizer(name) or name_has(name, OpTrait.WRITES_VARIABLE):
        return UPDATE
    if _METRICS.match(name):
        return METRICS
    if _LOSSES.match(name):
        return LOSS
    return FORWARD if _DIFFERENTIATED.match(name) or _SCOPED.match(name) else ""
