"""Prints what programs compare: a name, and a value or the exception in its place."""

import re
import sys
import traceback


def clean(value):
    """A value as text, without addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x", value if isinstance(value, str) else repr(value))


def show(name, make):
    """Prints what `make` returns or raises."""
    try:
        print(name, clean(make()))
    except Exception as error:
        print(name, "raises", type(error).__name__, clean(str(error)).splitlines()[:1])


def show_frames(name, make):
    """Prints through which functions an exception has passed."""
    try:
        make()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        print(name, type(error).__name__, [frame.name for frame in frames])


def depth():
    """How many functions run now."""
    frame, count = sys._getframe(1), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count
