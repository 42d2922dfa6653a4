"""Regular expressions that are compiled on first use, so that importing the vocabulary is cheap."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, Generic


class Pattern(Generic[AnyStr]):
    """A regular expression.  It has the methods of `re.Pattern`, which are as fast from the second call on."""

    match: Callable[..., re.Match[AnyStr] | None]
    search: Callable[..., re.Match[AnyStr] | None]
    fullmatch: Callable[[AnyStr], re.Match[AnyStr] | None]
    findall: Callable[[AnyStr], list[Any]]
    sub: Callable[[AnyStr, AnyStr], AnyStr]

    def __init__(self, text: AnyStr, flags: int = 0) -> None:
        self._text: AnyStr = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Compiles the pattern and stores the method, so that Python finds it directly next time."""
        if name not in ("match", "search", "fullmatch", "findall", "sub"):
            raise AttributeError(name)
        method = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, method)
        return method
