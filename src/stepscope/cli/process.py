"""What this process was started as."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.shelf import TraceShelf

words: list[str] | None = None
"""The command line, if this process is a command; None if it merely uses this package."""

shelf: TraceShelf | None = None
"""Where traces are kept from one command to the next, if this process runs many."""

shows_tool = False
"""Whether the command shows a tool: it has started no thread and no process, and leaves nothing to be done at exit."""
