"""HolisticTraceAnalysis on one trace: `python -m bench.hta_worker FILE [--warm FILE]`.

Runs under an interpreter that has it, and prints what `bench.worker` prints.  The call is its load and its temporal
breakdown, which come closest to an overview.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
import warnings
from importlib.metadata import version


def breakdown(path: str) -> tuple[float, dict[str, float]]:
    """The seconds that it took, and the busy time of the devices."""
    from hta.trace_analysis import TraceAnalysis

    begin = time.perf_counter()
    analysis = TraceAnalysis(trace_files={0: path}, include_last_profiler_step=True)
    table = analysis.get_temporal_breakdown(visualize=False)
    seconds = time.perf_counter() - begin
    return seconds, {"events": len(analysis.t.get_trace(0)), "busy_ms": _busy_ms(table.to_dict("records")[0])}


def _busy_ms(row: dict[str, float]) -> float:
    return (row["compute_time(us)"] + row["non_compute_time(us)"]) / 1e3


def main() -> None:
    """Warms up on a small trace, then measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--warm")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    if options.warm:
        breakdown(options.warm)
    seconds, answer = breakdown(options.file)
    print(json.dumps({"calls": [seconds], "answer": {**answer, "version": version("HolisticTraceAnalysis")}}))


if __name__ == "__main__":
    main()
