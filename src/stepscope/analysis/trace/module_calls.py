"""The calls of a model's modules."""

from __future__ import annotations

import numpy as np

from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64
from stepscope.vocabulary.torch import MODULE_PREFIX


def module_calls(trace: HostTrace) -> I64:
    """Rows of the calls of modules, in the order of the events; PyTorch records them with its Python calls."""
    python = np.flatnonzero(trace.events.kind == EventKind.PYTHON_CALL)
    types = trace.events.type[python]
    names = trace.event_types.name
    of_modules = [kind for kind in np.unique(types).tolist() if trace.strings[names[kind]].startswith(MODULE_PREFIX)]
    return python[np.isin(types, of_modules)]
