"""What the account takes from names, until kinds tell it: Python functions that make input, and where a frame is."""

from __future__ import annotations

import re

_INPUT = re.compile(
    r"(?:.*[ .](?:__getitem__|__next__|\w*collate\w*|next_batch|get_batch|load_batch)$|.*torch/utils/data/)"
)
_FRAME = re.compile(r"\$?(?P<file>[^<>]*\.py)[(:](?P<line>\d+)\)?:? (?P<name>.*)")


def is_input_function(name: str) -> bool:
    """Whether a Python call makes input: those that data loaders and iterators call by a fixed name.

    >>> is_input_function("train.py(9): __getitem__")
    True
    """
    return _INPUT.match(name) is not None


def place_of(frame: str) -> tuple[str, str | None, int | None]:
    """The function, file and line of a recorded Python call; its whole text and None where it has no file.

    >>> place_of("$train.py:9 __getitem__")
    ('__getitem__', 'train.py', 9)
    >>> place_of("train.py(12): step")
    ('step', 'train.py', 12)
    """
    found = _FRAME.match(frame)
    return (found["name"], found["file"], int(found["line"])) if found else (frame, None, None)
