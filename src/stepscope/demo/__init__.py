"""Small training programs for `stepscope demo`.

There is one module per framework, each with a function `train(logdir) -> Path | None`.  It trains a small classifier
for a few steps, profiles the later ones, and reads like a user's own program.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
from pathlib import Path
from types import ModuleType

from stepscope.errors import CaptureError, UsageError

# In the order of import time; NumPy is always installed.
PROGRAMS = {
    "jax": "stepscope.demo.with_jax",
    "torch": "stepscope.demo.with_torch",
    "tensorflow": "stepscope.demo.with_tensorflow",
    "numpy": "stepscope.demo.with_numpy",
}

# The frameworks' own messages would distract from the demo.
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "KINETO_LOG_LEVEL": "99"}


def train(logdir: str | os.PathLike[str], framework: str | None = None) -> Path:
    """Trains a small model under the profiler.

    Args:
        logdir: where the profile goes.
        framework: a key of PROGRAMS; None uses the first framework that can be imported.

    Returns:
        The profile's file.

    Raises:
        UsageError: there is no demo for the framework.
        CaptureError: the profile could not be recorded, or the requested framework cannot be imported.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    from stepscope.capture import last_error

    path: Path | None = _choose_program(framework).train(logdir)
    if path is None:
        raise last_error() or CaptureError("the demo recorded nothing", path=logdir)
    return path


def check_framework(framework: str | None) -> None:
    """Raises UsageError if there is no demo for a framework; None means any framework."""
    if framework is not None and framework not in PROGRAMS:
        raise UsageError(f"there is no demo for {framework}", hint=f"choose one of: {', '.join(PROGRAMS)}")


def _choose_program(framework: str | None) -> ModuleType:
    if framework is None:
        return next(program for name in PROGRAMS if (program := _import_program(name)) is not None)
    check_framework(framework)
    program = _import_program(framework)
    if program is None:
        raise CaptureError(f"{framework} cannot be imported", hint="let the demo choose a framework")
    return program


def _import_program(name: str) -> ModuleType | None:
    if importlib.util.find_spec(name) is None:
        return None
    try:
        return importlib.import_module(PROGRAMS[name])
    except Exception as error:  # a broken installation may raise anything
        logging.getLogger("stepscope").info("the demo does not use %s, which cannot be imported: %s", name, error)
        return None
