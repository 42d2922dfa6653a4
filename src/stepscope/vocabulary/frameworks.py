"""Detects the framework that wrote a trace, by names that only it writes, and what a recorder writes about itself."""

from __future__ import annotations

from collections import Counter

from stepscope.model import Strings
from stepscope.vocabulary import jax, tensorflow, torch
from stepscope.vocabulary.patterns import Pattern

# Python of the frameworks, as samples of stacks and calls show it: a program may import several, and runs one.
_OWN_PYTHON = Pattern(rb"/(jax/_src|torch/[a-z]\w*|tensorflow/python)/")
_OF_PACKAGE = {b"jax": "jax", b"torch": "pytorch", b"tensorflow": "tensorflow"}


def framework_of(strings: Strings) -> str:
    """The framework that wrote some texts; empty if unknown."""
    if any(strings.find(name) > 0 for name in jax.VERSION_STATS):
        return "jax"
    if any(strings.find(name) > 0 for name in tensorflow.ONLY_HERE):
        return "tensorflow"
    blob = strings.blob.data
    for name, pattern in (("jax", jax.ONLY_HERE), ("pytorch", torch.ONLY_HERE), ("jax", jax.MOSTLY_HERE)):
        if pattern.search(blob):
            return name
    found = Counter(package.partition(b"/")[0] for package in _OWN_PYTHON.findall(bytes(blob)))
    return _OF_PACKAGE[found.most_common(1)[0][0]] if found else ""


WINDOW_NAME_BYTES = (20, 40)
"""How many bytes the name of a row has that a recorder writes about itself: of a million names few are looked at."""
_WINDOW = Pattern(r"PyTorch Profiler \(\d+\)$")  # lasts from the recorder's start to its stop


def states_window(name: str) -> bool:
    """Whether a row of this name is no work, but states when its recorder recorded."""
    return _WINDOW.match(name) is not None
