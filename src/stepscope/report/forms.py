"""Forms of a report, by name.  A report requests a form and does not know the module that makes it.

That module is imported on first use: the terminal's library is not loaded for a report that becomes JSON.
"""

from __future__ import annotations

import importlib
from typing import Any

_MAKERS: dict[str, tuple[str, str]] = {}


def register_form(form: str, module: str, function: str) -> None:
    """Registers the function that makes a form from a report."""
    _MAKERS[form] = (module, function)


def make_form(form: str, report: object) -> Any:
    """Makes a form of a report.  Raises KeyError for an unknown form."""
    module, function = _MAKERS[form]
    return getattr(importlib.import_module(module), function)(report)
