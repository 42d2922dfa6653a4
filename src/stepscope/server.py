"""Lets others capture this program: `from stepscope.server import start`."""

from stepscope.capture.server import start, stop

__all__ = ["start", "stop"]
