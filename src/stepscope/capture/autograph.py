"""Keeps TensorFlow's AutoGraph away from Stepscope's own code.

A program may call the profiler inside a `tf.function`.  While that is traced, AutoGraph rewrites the source of every
function that is called, and of all functions below, which takes seconds for the profiler and gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def keep_as_python(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function that AutoGraph calls as it is; its mark is this attribute."""
    function.autograph_info__ = {}  # type: ignore[attr-defined]
    return function
