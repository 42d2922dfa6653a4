"""Stepscope: where the step time of a training job goes, and what to change first.

In a training job:

    import stepscope as profiler

    with profiler.Profile("logs"):
        for i in range(10):
            with profiler.Trace("train", step_num=i, _r=1):
                train_step()

Afterwards:

    profile = stepscope.load("logs")
    print(profile.overview().verdict.sentence)

Importing this package imports nothing heavy: names are looked up on first use.
"""

from __future__ import annotations

import os
import sys

__version__ = "0.1.0"

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from stepscope.api import compare, load
    from stepscope.budgets import BudgetWarning, budget, gate
    from stepscope.capture import (
        Profile,
        Profiler,
        ProfilerOptions,
        Trace,
        annotate,
        last_error,
        schedule,
        start,
        step,
        stop,
        warmup,
    )
    from stepscope.capture.proving.launch import prove
    from stepscope.capture.watching.process import observe, trigger, watch
    from stepscope.errors import StepscopeError
    from stepscope.notebook.widget import timeline

_NAMES_OF = {
    "stepscope.api": ("compare", "load"),
    "stepscope.budgets": ("BudgetWarning", "budget", "gate"),
    "stepscope.capture": (
        "Profile",
        "Profiler",
        "ProfilerOptions",
        "Trace",
        "annotate",
        "last_error",
        "schedule",
        "start",
        "step",
        "stop",
        "warmup",
    ),
    "stepscope.capture.proving.launch": ("prove",),
    "stepscope.capture.watching.process": ("observe", "trigger", "watch"),
    "stepscope.errors": ("StepscopeError",),
    "stepscope.notebook.widget": ("timeline",),
}
_HOME = {name: home for home, names in _NAMES_OF.items() for name in names}
# Modules of their own, so that `from stepscope.keras import ProfilerCallback` works as well.
_MODULES = {"client", "huggingface", "keras", "lightning", "server"}
_OF_FRAMEWORKS = {"huggingface": "transformers", "keras": "keras", "lightning": "lightning"}  # what each imports

__all__ = [
    "BudgetWarning",
    "Profile",
    "Profiler",
    "ProfilerOptions",
    "StepscopeError",
    "Trace",
    "annotate",
    "budget",
    "client",
    "compare",
    "gate",
    "huggingface",
    "keras",
    "last_error",
    "lightning",
    "load",
    "observe",
    "prove",
    "schedule",
    "server",
    "start",
    "step",
    "stop",
    "timeline",
    "trigger",
    "warmup",
    "watch",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"stepscope.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What may be looked up without importing a framework.

    Tools that replace functions, as freezegun, look up all names of all modules of a program: one that is followed has
    no use for ours.
    """
    report = sys.modules.get("stepscope.capture.report")
    if report is not None and report.Saying.to_stderr:
        return sorted(globals())
    named = (name for name in __all__ if _OF_FRAMEWORKS.get(name, "sys") in sys.modules)
    return sorted([*(name for name in globals() if name.startswith("__")), *named])


def load_ipython_extension(shell: Any) -> None:
    """Adds the magics of notebooks: IPython calls this for `%load_ext stepscope`."""
    from stepscope.notebook.magics import load_extension

    load_extension(shell)


for _finder in list(sys.meta_path):
    if hasattr(_finder, "begin_with_stepscope"):  # see stepscope.capture.startup.sitecustomize
        _finder.begin_with_stepscope()

if os.environ.get("STEPSCOPE_LOGDIR"):  # see stepscope.capture.auto.autostart
    from stepscope.capture.auto.autostart import arm_on_import

    arm_on_import()
