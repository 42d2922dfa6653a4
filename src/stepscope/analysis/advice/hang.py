"""The answer to dumps of PyTorch's flight recorder: they hold collectives alone, and are written when a job hangs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.steps.verdict import Verdict
from stepscope.errors import counted

WHO_IS_MISSING = "distributed"  # the tool that compares the calls of all ranks
_MOST_NAMED = 3  # ranks of a headline
_NOTHING_ELSE = "dumps of the flight recorder hold collectives alone"


def holds_dumps(context: Context) -> bool:
    """Whether every host is a dump, so that nothing is known of steps."""
    return bool(context.hosts) and all(host.is_dump for host in context.hosts)


def judge_dumps(context: Context) -> tuple[Advice, Verdict] | None:
    """The advice and the verdict if every host is a dump; None for other recordings."""
    if not holds_dumps(context):
        return None
    report = context.read(WHO_IS_MISSING)
    if report is not None and report.missing:
        return _advise(report.missing), _judge(report.missing)
    came = "no rank is missing from a collective in these dumps; " if report is not None else ""
    return _advise_trace(came), Verdict("unknown", None, f"unknown: {_NOTHING_ELSE}", None, (f"{came}{_NOTHING_ELSE}",))


def _advise_trace(came: str) -> Advice:
    return Advice(
        id="dump",
        kind="none",
        title="Record a trace: dumps do not show what limits the steps",
        evidence=f"{came}what ran between the collectives was not recorded",
        predicted_speedup=None,
        actions=(
            "record some steps with torch.profiler, or `stepscope run SCRIPT`",
            "if the job hangs, dump every rank while it does: TORCH_NCCL_DUMP_ON_TIMEOUT=1 and"
            " TORCH_NCCL_TRACE_BUFFER_SIZE=2000",
        ),
        tool=WHO_IS_MISSING,
        confidence=0.9,
        reasoning="a dump holds the last collectives, and no steps, ops or kernels",
    )


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['operation']} #{row['number']}"


def _ranks(rows: Sequence[Mapping[str, Any]]) -> str:
    """Who is missing from the first collective: `rank 2`, `ranks 2 and 5`."""
    numbers = [str(row["rank"]) for row in rows if row["group"] == rows[0]["group"]]
    if len(numbers) > _MOST_NAMED:
        return counted(len(numbers), "rank")
    *first, last = numbers
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"


def _judge(missing: Sequence[Mapping[str, Any]]) -> Verdict:
    row = missing[0]
    came_wrong = str(row["what"]).startswith("arrived with")
    how = "came with another call to" if came_wrong else "did not arrive at"
    at = f"its last call is at {row['at']}" if row["at"] else "where it is was not recorded"
    others = f"the others wait at {row['others_at']}" if row["others_at"] else f"the others wait in {_place(row)}"
    return Verdict("unknown", None, f"hang: {_ranks(missing)} {how} {_place(row)}", None, (at, others))


def _advise(missing: Sequence[Mapping[str, Any]]) -> Advice:
    row = missing[0]
    at = f", at {row['at']}" if row["at"] else ""
    others = f", at {row['others_at']}" if row["others_at"] else ""
    said = [f"rank {each['rank']} {each['what']}" for each in missing[:_MOST_NAMED]]
    more = f", and {counted(len(missing) - len(said), 'more rank')}" if len(missing) > len(said) else ""
    return Advice(
        id="hang",
        kind="straggler",
        title=f"Find out why {_ranks(missing)} did not come to {_place(row)}: the job hangs there",
        evidence=f"{'; '.join(said)}{more}{at}; the others wait in {_place(row)} of {row['group']}{others}",
        predicted_speedup=None,
        actions=(
            f"look at what rank {row['rank']} does after its last call{at}: a branch that only some ranks take, an"
            " error that was caught, or data that ended earlier",
            "see where it is now: py-spy dump --pid PID, on its machine",
            "make sure that all ranks call the same collectives in the same order: TORCH_DISTRIBUTED_DEBUG=DETAIL checks",
        ),
        tool=WHO_IS_MISSING,
        confidence=0.95,
        reasoning="collectives of a group have the same number on every rank, so the number says who is missing",
    )
