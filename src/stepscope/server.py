"""Lets other programs capture this one: `from stepscope.server import start`."""

from stepscope.capture.server import start, stop

__all__ = ["start", "stop"]
