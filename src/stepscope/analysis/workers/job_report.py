"""A job of many ranks as tables: how much slower it is than with equal work, by part and by step, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from stepscope.analysis.workers.answer import JobAnswer, list_names
from stepscope.analysis.workers.equal_work import Job
from stepscope.analysis.workers.stragglers import JobCulprit, Straggling
from stepscope.report import Cell, Field, Role, round_ms

JOB_FIELDS: tuple[Field, ...] = (
    Field("slowdown", "ratio", "S: how many times as long the steps are as with equal work"),
    Field("explained_by_worst_worker", "ratio",
          "M_W: of the gain of equal work, what equal work of the slowest worker alone gives; unknown where nothing is"
          " worth naming"),
    Field("explained_by_last_stage", "ratio", "M_S: the same of the last stage of a pipeline"),
    Field("replay_error_percent", "percent", "how far the worst rank's median step in the replay is from the recorded"),
    Field("slowest_rank", "text", "the one rank that is at fault; unknown if none is", "str", role=Role.PLACE),
)  # fmt: skip
PART_FIELDS: tuple[Field, ...] = (
    Field("part", "text", "worker, stage, replica (of the model) or kind (of work)", "str", role=Role.TERM),
    Field("name", "text", "which one: a rank, the number of a stage or a replica, a kind", "str", role=Role.LABEL),
    Field("slowdown", "ratio", "how many times as long steps are if this alone keeps its work and all else is equal"),
    Field("explains_percent", "percent",
          "of the gain of equal work, what equal work of this alone gives; unknown where nothing is worth naming"),
)  # fmt: skip
JOB_STEP_FIELDS: tuple[Field, ...] = (
    Field("step", "number", "the step's number", "int", role=Role.STEP),
    Field("step_ms", "ms", "how long it takes in the replay of all ranks"),
    Field("equal_ms", "ms", "how long it would take with equal work"),
    Field("slowdown", "ratio", "the one divided by the other"),
    Field("slowest", "text", "the part with the largest slowdown in it", "str", role=Role.LABEL),
)
HEAT_FIELDS: tuple[Field, ...] = (
    Field("table", "text", "worker_by_step or stage_by_kind", "str", role=Role.TERM),
    Field("row", "text", "the rank, or the stage", "str", role=Role.LABEL),
    Field("column", "text", "the step, or the kind of work", "str", role=Role.LABEL),
    Field(
        "slowdown", "ratio", "how many times as long steps are where this alone keeps its work and all else is equal"
    ),
)
CAUSE_FIELDS: tuple[Field, ...] = (
    Field("cause", "text", "why the job is slower than with equal work; unknown if nothing explains most of it",
          "str", role=Role.TERM),
    Field("stage", "number", "the stage that is concerned, from 0; unknown if none is", "int", role=Role.ORDINAL),
    Field("members", "text", "the ranks that are concerned; unknown if all are", "str", role=Role.LABEL),
    Field("explains_percent", "percent", "of the gain of equal work, what equal work of this alone gives"),
    Field("gain_percent", "percent", "what that is of the step"),
    Field("evidence", "text", "what tells it", "str", role=Role.LABEL),
)  # fmt: skip
_MOST_REPLICAS = 64  # each takes a replay
_EVIDENCE = {
    Straggling.UNEQUAL_STAGES: "where only its work differs from the mean, steps are {more:.0f} % longer, and it is"
    " so on all of its ranks: move layers to other stages",
    Straggling.SEQUENCE_LENGTHS: "forward and backward work grow together, and change from step to step: give each"
    " microbatch about as many tokens",
    Straggling.SLOW_MACHINE: "its work takes {more:.0f} % longer than with equal work, in most steps: check clocks,"
    " heat and other programs there",
    Straggling.GARBAGE_COLLECTION: "threads pause rarely, for {more:.0f} % of a step, now on one rank, now on another:"
    " collect garbage on all ranks at the same steps",
    Straggling.SLOW_LINK: "its transfers take {more:.0f} % longer than others of their kind: check that link",
    Straggling.LATE_INPUT: "its loop waits for its input, the others do not: check its storage and workers",
    Straggling.EXTRA_WORK: "its threads do more in most steps, or it runs more ops without a longer backward pass:"
    " evaluate, log and save rarely",
    Straggling.MORE_DATA: "its ops take more data than those of the others, in most steps: give every worker as much,"
    " such as every n-th sequence of a sorted batch",
    Straggling.UNKNOWN: "no known cause explains most of it",
}


def describe_job(
    answer: JobAnswer | None, names: Sequence[str], numbers: Sequence[int]
) -> tuple[dict[str, Cell], dict[str, Any]]:
    """Answers the questions of the study: the figures of JOB_FIELDS that it asks for, and the tables by attribute of
    the report of `distributed`.

    Args:
        names, numbers: of each rank.
    """
    figures: dict[str, Cell] = dict.fromkeys(("slowdown", "explained_by_worst_worker", "explained_by_last_stage"))
    if answer is None:
        return figures, dict.fromkeys(("causes", "parts", "job_steps", "heat"), ())
    job, culprit, layout = answer.job, answer.culprit, answer.job.layout
    replicas = [job.rows_of_ranks(layout.replica == at) for at in range(min(layout.replicas, _MOST_REPLICAS))]
    stages = [job.rows_of_ranks(layout.stage == at) for at in range(layout.stages)]
    by_replica, by_stage = (np.array([job.ratios_of(part) for part in parts]) for parts in (replicas, stages))
    workers = _workers(job, by_replica, by_stage)
    figures["slowdown"] = job.slowdown
    if culprit:  # shares of noise are noise
        worst = job.rows_of_places((int(workers.mean(axis=1).argmax()),))
        figures["explained_by_worst_worker"] = job.explains(worst)
        figures["explained_by_last_stage"] = job.explains(stages[-1]) if stages else None
    return figures, {
        "causes": (_cause_row(culprit, names, numbers),) if culprit else (),
        "parts": tuple(_part_rows(answer, names, workers, stages, replicas)),
        "job_steps": tuple(_step_rows(job, names, workers, by_stage)),
        "heat": tuple(_heat_rows(job, names, workers)),
    }


def _workers(job: Job, by_replica: np.ndarray, by_stage: np.ndarray) -> np.ndarray:
    """The slowdown of each worker by step: that of its stage or of its replica, whichever is less, as in the study."""
    ranks, steps = len(job.layout.stage), job.places.shape[1]
    found = np.ones((ranks, steps))
    for rank, (stage, replica) in enumerate(zip(job.layout.stage, job.layout.replica, strict=True)):
        own = [by_stage[stage]] if stage >= 0 else []
        own += [by_replica[replica]] if replica < len(by_replica) else []
        found[rank] = np.min(own, axis=0) if own else 1.0
    return found


def _cause_row(culprit: JobCulprit, names: Sequence[str], numbers: Sequence[int]) -> dict[str, Cell]:
    return {
        "cause": culprit.cause.name.lower(),
        "stage": culprit.stage if culprit.stage >= 0 else None,
        "members": list_names([names[rank] for rank in culprit.ranks]) or None,
        "explains_percent": _percent_of_gain(culprit.explains),
        "gain_percent": round(100 * culprit.gain, 1),
        "evidence": _EVIDENCE[culprit.cause].format(more=100 * culprit.more),
        "ranks": [numbers[rank] for rank in culprit.ranks],
    }


def _percent_of_gain(share: float) -> float:
    """At most 100: equal work of one part may save more than equal work of all."""
    return round(min(100 * share, 100.0), 1)


def _part_rows(
    answer: JobAnswer,
    names: Sequence[str],
    workers: np.ndarray,
    stages: Sequence[np.ndarray],
    replicas: Sequence[np.ndarray],
) -> Iterator[dict[str, Cell]]:
    job, is_noise = answer.job, answer.culprit is None  # shares of noise are noise
    for part, found in (("stage", stages), ("replica", replicas if stages else ())):
        for at, rows in enumerate(found):
            yield _part_row(part, str(at), job.slowdown_of(rows), None if is_noise else job.explains(rows))
    for at, kind in enumerate(job.rows.kinds):
        rows = job.rows.kind == at
        if rows.any():
            yield _part_row("kind", kind, job.slowdown_of(rows), None if is_noise else job.explains(rows))
    for rank, steps in enumerate(workers):
        yield _part_row("worker", names[rank], float(steps.mean()), None)


def _part_row(part: str, name: str, slowdown: float, explains: float | None) -> dict[str, Cell]:
    share = None if explains is None else _percent_of_gain(explains)
    return {"part": part, "name": name, "slowdown": round(slowdown, 4), "explains_percent": share}


def _step_rows(job: Job, names: Sequence[str], workers: np.ndarray, by_stage: np.ndarray) -> Iterator[dict[str, Cell]]:
    numbers = job.step_numbers
    for at, (now, best) in enumerate(zip(job.now_ps.tolist(), job.best_ps.tolist(), strict=True)):
        worst = int(workers[:, at].argmax())
        slowest = f"stage {int(by_stage[:, at].argmax())}" if len(by_stage) else names[worst]
        yield {
            "step": numbers[at],
            "step_ms": round_ms(now),
            "equal_ms": round_ms(best),
            "slowdown": round(now / max(best, 1), 4),
            "slowest": slowest,
        }


def _heat_rows(job: Job, names: Sequence[str], workers: np.ndarray) -> Iterator[dict[str, Cell]]:
    numbers = job.step_numbers
    for rank, steps in enumerate(workers.tolist()):
        for at, slowdown in enumerate(steps):
            yield _heat_row("worker_by_step", names[rank], str(numbers[at]), slowdown)
    for stage in range(job.layout.stages):
        ranks = job.rows_of_ranks(job.layout.stage == stage)
        for at, kind in enumerate(job.rows.kinds):
            rows = ranks & (job.rows.kind == at)
            if rows.any():
                yield _heat_row("stage_by_kind", str(stage), kind, job.slowdown_of(rows))


def _heat_row(table: str, row: str, column: str, slowdown: float) -> dict[str, Cell]:
    return {"table": table, "row": row, "column": column, "slowdown": round(slowdown, 4)}
