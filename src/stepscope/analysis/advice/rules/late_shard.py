"""A dataset is sharded after its elements were made: every worker makes all of them, and drops those of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.report import amount

_SHARD = "Shard"
# Stages whose work is lost for dropped elements; sources such as file names and ranges cost nothing.
_WORK = ("Map", "ParallelMap", "Filter", "Batch", "PaddedBatch", "TFRecord", "TextLine", "FixedLengthRecord",
         "Interleave", "ParallelInterleave", "FlatMap")  # fmt: skip
_US_PER_MS = 1000.0


def _evaluate(context: Context, threshold: float) -> Advice | None:
    report = context.read("tf-data")
    graph: Sequence[Mapping[str, Any]] = report.graph if report else ()
    shard = next((row for row in graph if str(row["name"]).startswith(_SHARD)), None)
    if shard is None:
        return None
    before = [row for row in graph if _feeds(row, shard) and str(row["name"]).startswith(_WORK)]
    lost_us = sum(amount(row["self_us"]) for row in before)
    whole_us = amount(graph[0]["total_us"])
    if not before or not whole_us or 100.0 * lost_us < threshold * whole_us:
        return None
    names = ", ".join(dict.fromkeys(str(row["name"]) for row in before))
    return Advice(
        id="input.shard-late",
        kind="input_preprocessing",
        title="Shard the dataset before its elements are made",
        evidence=f"{shard['long_name']} drops elements that {names} made before it:"
        f" {100.0 * lost_us / whole_us:.0f} % of the slowest call of the pipeline, on every worker",
        predicted_speedup=None,
        actions=(
            "call .shard(num_workers, index) first, on the list of files: Dataset.list_files(pattern, shuffle=False)"
            ".shard(n, i).interleave(open_file, num_parallel_calls=tf.data.AUTOTUNE)",
            "with tf.distribute, leave it to AutoShardPolicy.FILE in tf.data.Options().experimental_distribute",
        ),
        tool="tf-data",
        confidence=0.8,
        rows=tuple(
            Row("tf-data", str(row["long_name"]), round(amount(row["self_us"]) / _US_PER_MS, 3)) for row in before
        ),
    )


def _feeds(row: Mapping[str, Any], shard: Mapping[str, Any]) -> bool:
    """Whether a stage makes elements for the shard: its long name begins with the shard's."""
    return row is not shard and str(row["long_name"]).startswith(str(shard["long_name"]))


RULE = Rule(id="input.shard-late", threshold_percent=10.0, evaluate=_evaluate)
