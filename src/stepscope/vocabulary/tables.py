"""How names and what they mean are written down."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import IntFlag
from functools import cache, cached_property, lru_cache, reduce
from operator import or_

from stepscope.model import EventKind, Trait
from stepscope.records import dataclass

KindRule = tuple[str, EventKind, Trait]
"""A pattern that names of a kind of event match from their start, the kind, and traits of the event."""

Test = str | Callable[[str], object]
"""What names have in common: a pattern that they match from their start, or a function that returns something true."""

_MOST_KEYS = 8192


@dataclass(frozen=True, eq=False)
class NameTable:
    """Names of one framework, and the traits they have.

    Attributes:
        rules: traits and the names that have them; a name has the traits of all rules that it passes.
        exact: names that are always the same.
        speaks: False for names to which no rule applies: asked first, since most names are other frameworks'.
        key: the part of a name that the rules see, asked after `speaks`.  Few distinct keys are judged much sooner than
            many names.
    """

    rules: tuple[tuple[IntFlag, Test], ...] = ()
    exact: Mapping[str, IntFlag] = field(default_factory=dict)
    speaks: Callable[[str], bool] | None = None
    key: Callable[[str], str] | None = None

    @cached_property
    def traits(self) -> dict[type[IntFlag], int]:
        """All traits that the table can give, by their class."""
        flags = [*(trait for trait, _ in self.rules), *self.exact.values()]
        return {kind: reduce(or_, (int(flag) for flag in flags if type(flag) is kind)) for kind in map(type, flags)}

    def reader(self, kind: type[IntFlag]) -> Callable[[str], int]:
        """A function that gives the traits of a name, those of one class."""
        rules = [(int(trait), test) for trait, test in self.rules if type(trait) is kind]
        exact = {name: int(trait) for name, trait in self.exact.items() if type(trait) is kind}

        @cache
        def tests() -> list[tuple[int, Callable[[str], object]]]:
            """Made for the first name that is judged: a table that none speaks to compiles no pattern."""
            return [(bit, _passes(test)) for bit, test in rules]

        def judge(text: str) -> int:
            bits = exact.get(text, 0)
            for bit, passes in tests():
                if passes(text):
                    bits |= bit
            return bits

        return self._guarded(judge) if rules else lambda name: exact.get(name, 0)

    def _guarded(self, judge: Callable[[str], int]) -> Callable[[str], int]:
        speaks, key = self.speaks, self.key
        if key is not None:
            of_key = lru_cache(maxsize=_MOST_KEYS)(judge)
            if speaks is not None:
                return lambda name: of_key(key(name)) if speaks(name) else 0
            return lambda name: of_key(key(name))
        if speaks is not None:
            return lambda name: judge(name) if speaks(name) else 0
        return judge


def _passes(test: Test) -> Callable[[str], object]:
    return re.compile(test).match if isinstance(test, str) else test
