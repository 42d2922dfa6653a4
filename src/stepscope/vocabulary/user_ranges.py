"""Ranges that people write around parts of their loop, such as `load batch`: their words say what happens there."""

from __future__ import annotations

from stepscope.model import EventKind, Trait
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule

_WHAT = r"(?:input|data|train(?:ing)?[ _]data|(?:mini[ _-]?)?batch(?:es)?|samples?|examples?|records?)"
_INPUT = (
    r"(?:load|fetch|get|read|wait[ _-]for|next)(?:ing)?[ _-](?:the[ _-])?(?:next[ _-])?" + _WHAT + r"$"
    r"|(?:next[ _-])?" + _WHAT + r"[ _-]?(?:load|fetch|wait|read|time)(?:ing|er)?$"
    r"|(?:input|data)[ _-]?pipeline$"
)

KINDS: tuple[KindRule, ...] = ((rf"(?i:{_INPUT})", EventKind.INPUT_WAIT, Trait.NONE),)
"""A range with one of these names is what the step does to get its batch."""

_IS_INPUT = Pattern(rf"(?i:{_INPUT})")


def gets_input(name: str) -> bool:
    """True for the name of a range in which a program gets its next batch.

    >>> [gets_input(name) for name in ("load batch", "data_loading", "Fetch next batch", "dataloader")]
    [True, True, True, True]
    >>> [gets_input(name) for name in ("train batch", "batch norm", "Handle inputs", "load_model", "data_parallel")]
    [False, False, False, False, False]
    """
    return _IS_INPUT.match(name) is not None
