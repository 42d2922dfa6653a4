"""Lets other programs capture this one: `from stepscope.server import start`."""

from stepscope.capture.server import ANY_ADDRESS, start, stop

__all__ = ["ANY_ADDRESS", "start", "stop"]
