"""Imports in advance what the first profile and the first timeline need."""

from __future__ import annotations

import importlib
import logging

from stepscope.analysis.registry import tool_named
from stepscope.formats.base import FORMATS

_TIMELINE = "stepscope.web.timeline"


def warm_up(first_tool: str) -> None:
    """Imports the readers, a tool and the timeline.  A failure is logged; the import then happens later.

    Args:
        first_tool: the tool that the page requests first.
    """
    try:
        for kind in FORMATS:
            kind.load_reader()
        for module in (tool_named(first_tool).module, _TIMELINE):
            importlib.import_module(module)
    except Exception as error:
        logging.getLogger(__name__).warning("the first profile will open more slowly: %s", error)
