"""Regular expressions that are compiled when they are first used: importing the vocabulary has to cost little."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, Generic


class Pattern(Generic[AnyStr]):
    """A regular expression.  Its methods are those of `re.Pattern`, and as fast from the second call on."""

    match: Callable[..., re.Match[AnyStr] | None]
    search: Callable[..., re.Match[AnyStr] | None]
    fullmatch: Callable[[AnyStr], re.Match[AnyStr] | None]
    findall: Callable[[AnyStr], list[AnyStr]]
    sub: Callable[[AnyStr, AnyStr], AnyStr]

    def __init__(self, text: AnyStr, flags: int = 0) -> None:
        self._text: AnyStr = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Called for a method that is not there yet: from now on it is."""
        if name not in ("match", "search", "fullmatch", "findall", "sub"):
            raise AttributeError(name)
        method = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, method)
        return method
