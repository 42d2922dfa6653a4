"""What a program annotated the nodes of its CUDA graphs with: module, region, phase and collective of replayed work.

PyTorch writes the annotations of a node to every piece of work that a replay runs for it (`torch.cuda.graph(...,
enable_annotations=True)` and `export_chrome_trace(..., cuda_graph_annotations=...)`).
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass

_NODE = stat_names.GRAPH_NODE_ID[:1]  # as PyTorch spells it; other writers' graphs carry no annotations
_BACKWARD = "backward"


@dataclass(frozen=True)
class Annotations:
    """Annotated work of graphs.

    Attributes:
        rows: int64 of shape (n,), events, ascending.
        collective, module, region: int64 of shape (n,), string rows; 0 where the node has no such annotation.
        is_backward: bool of shape (n,), autograd recorded the node.
    """

    rows: I64
    collective: I64
    module: I64
    region: I64
    is_backward: Mask


def annotations_of(trace: HostTrace) -> Annotations:
    """The annotated work of a trace, found once per trace."""
    return trace.derived("graph annotations", _find_annotations)


def _find_annotations(trace: HostTrace) -> Annotations:
    if not trace.has_stat(_NODE):
        none = np.empty(0, np.int64)
        return Annotations(none, none, none, none, np.empty(0, np.bool_))
    rows, _ = trace.events_with_int(_NODE, least=1)
    rows = rows[is_device_work(trace)[rows]]
    collective, module, region = (
        np.maximum(trace.stat_strings(names, rows=rows), 0)
        for names in (stat_names.COLLECTIVE_NAME, stat_names.ANNOTATED_MODULE, stat_names.ANNOTATED_REGION)
    )
    backward = trace.strings.find(_BACKWARD)
    phase = trace.stat_strings(stat_names.ANNOTATED_PHASE, rows=rows)
    has = (collective > 0) | (module > 0) | (region > 0)
    return Annotations(rows[has], collective[has], module[has], region[has], (phase == backward)[has] & (backward > 0))
