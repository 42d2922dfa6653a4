"""Asks HolisticTraceAnalysis about trace files: `python hta_worker.py FILE ...` prints a JSON object by file.

Runs under an interpreter of its own, since HTA brings packages that the tests do not need.  It is told not to round
times to microseconds and not to drop the last step.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from typing import Any


def answers(path: str) -> dict[str, Any]:
    """Breakdown, overlap, idle time by cause, and kernels of one file; times in us."""
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: path}, include_last_profiler_step=True)
    idle, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=100_000)
    return {
        "temporal": analysis.get_temporal_breakdown(visualize=False).to_dict("records")[0],
        "overlap": float(analysis.get_comm_comp_overlap(visualize=False)["comp_comm_overlap_pctg"].iloc[0]),
        "idle": idle[["stream", "idle_category", "idle_time"]].values.tolist(),
        "types": types[["kernel_type", "sum"]].values.tolist(),
        "kernels": kernels[["name", "sum (us)", "max (us)", "min (us)"]].values.tolist(),
    }


if __name__ == "__main__":
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    print(json.dumps({path: answers(path) for path in sys.argv[1:]}))
