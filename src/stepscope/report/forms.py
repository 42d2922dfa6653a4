"""Forms of a report that Python shows by itself, by name.  A report asks for its form and does not know who makes it.

Whoever makes a form is imported when it is first wanted: a terminal's library is not loaded for a report that becomes
JSON.
"""

from __future__ import annotations

import importlib
from typing import Any

_MAKERS: dict[str, tuple[str, str]] = {}


def register(form: str, module: str, function: str) -> None:
    """Says which function, of one report, makes a form of it."""
    _MAKERS[form] = (module, function)


def make(form: str, report: object) -> Any:
    """A report in a form.  Raises KeyError for a form that nobody makes."""
    module, function = _MAKERS[form]
    return getattr(importlib.import_module(module), function)(report)
