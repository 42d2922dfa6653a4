"""Detects the framework that wrote a trace, by names that only it writes."""

from __future__ import annotations

from stepscope.model import Strings
from stepscope.vocabulary import jax, tensorflow, torch


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
    return ""
