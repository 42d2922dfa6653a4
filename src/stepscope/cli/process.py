"""What this process was started as."""

from __future__ import annotations

words: list[str] | None = None
"""The command line, if this process is a command; None if it merely uses this package."""

shows_tool = False
"""Whether the command shows a tool: it has started no thread and no process, and leaves nothing to be done at exit."""
