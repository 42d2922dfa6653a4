"""The form of rules about names: patterns with kinds, and tables with traits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from enum import IntFlag
from functools import cache, cached_property, lru_cache, reduce
from operator import or_

from stepscope.model import EventKind, Trait
from stepscope.records import dataclass

KindRule = tuple[str, EventKind, Trait]
"""A pattern that matches a name from its start, and the kind and traits of events with such a name."""

Test = str | Callable[[str], object]
"""A test of names: a pattern that matches from the start, or a function that returns a true value."""

_MOST_KEYS = 8192


@dataclass(frozen=True, eq=False)
class NameTable:
    """Names of one framework, and the traits they have.

    Attributes:
        rules: traits, each with a test; a name has the traits of all tests that it passes.
        exact: the traits of exact names.
        applies: False for names to which no rule applies.  It is called first, since most names are other frameworks'.
        key: the part of a name that the rules test, called after `applies`.  Judging few distinct keys is much faster
            than judging many names.
    """

    rules: tuple[tuple[IntFlag, Test], ...] = ()
    exact: Mapping[str, IntFlag] = field(default_factory=dict)
    applies: Callable[[str], bool] | None = None
    key: Callable[[str], str] | None = None

    @cached_property
    def traits(self) -> dict[type[IntFlag], int]:
        """All traits in the table, by their class."""
        flags = [*(trait for trait, _ in self.rules), *self.exact.values()]
        return {kind: reduce(or_, (int(flag) for flag in flags if type(flag) is kind)) for kind in map(type, flags)}

    def reader(self, kind: type[IntFlag]) -> Callable[[str], int]:
        """A function that finds the traits of a name that belong to one class."""
        rules = [(int(trait), test) for trait, test in self.rules if type(trait) is kind]
        exact = {name: int(trait) for name, trait in self.exact.items() if type(trait) is kind}

        @cache
        def tests() -> list[tuple[int, Callable[[str], object]]]:
            """The tests, compiled for the first name that gets here: a table without such a name compiles nothing."""
            return [(bit, re.compile(test).match if isinstance(test, str) else test) for bit, test in rules]

        def judge(text: str) -> int:
            bits = exact.get(text, 0)
            for bit, passes in tests():
                if passes(text):
                    bits |= bit
            return bits

        if not rules:
            return lambda name: exact.get(name, 0)
        if self.key is not None:
            of_key, keys_of = lru_cache(maxsize=_MOST_KEYS)(judge), self.keys_of
            return lambda name: 0 if (part := keys_of((name,))[0]) is None else of_key(part)
        applies = self.applies
        return judge if applies is None else lambda name: judge(name) if applies(name) else 0

    def keys_of(self, names: Iterable[str]) -> list[str | None]:
        """The part of each name that the rules test; None if no rule applies to it."""
        applies, key = self.applies, self.key or str
        return [None if applies is not None and not applies(name) else key(name) for name in names]

    def reader_of_keys(self, kind: type[IntFlag]) -> Callable[[str | None], int]:
        """As `reader`, for what `keys_of` gives in place of names: finding that costs more than judging it."""
        whole = replace(self, applies=None, key=None).reader(kind)
        return lru_cache(maxsize=_MOST_KEYS)(lambda part: 0 if part is None else whole(part))
