"""Planted faults, and the truth about them: the same job is simulated as it is, healthy, and with equal work."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from bench.jobs.plan import Plan, build_plan
from bench.jobs.schedules import SCHEDULES
from bench.jobs.simulate import F64

FAULTS = ("stages", "layers", "sequences", "machine", "garbage", "link", "input")
ON_DEVICE = ("forward", "backward", "weight", "loss", "loss_backward", "optimizer")
PAUSE_CHANCE = 0.4  # of a garbage collection in a step of a rank


@dataclass(frozen=True)
class Fault:
    """What is wrong, and where: `cause` is one of FAULTS, strength a factor less 1, or ms."""

    cause: str
    strength: float = 0.0
    stage: int | None = None
    ranks: tuple[int, ...] = ()


def faults_of(kind: str) -> tuple[str, ...]:
    """The faults that a kind of job can have, and that can be told from its traces."""
    staged, single = kind in SCHEDULES, kind in ("ddp", "fsdp")
    return tuple(
        fault for fault in FAULTS if (staged or fault not in ("stages", "layers")) and not (single and fault == "link")
    )


def plant_fault(plan: Plan) -> Fault | None:
    """The job's fault, as strong as the job asks for; additional layers come in whole."""
    fault = _place_fault(plan)
    return replace(fault, strength=find_strength(plan, fault)) if fault and fault.cause != "layers" else fault


def _place_fault(plan: Plan) -> Fault | None:
    """Where the job's fault is, before it is known how strong."""
    job, rng = plan.job, np.random.default_rng([plan.job.seed, 7])
    stages = job.sizes["pipeline"]
    if job.fault == "stages":
        return Fault("stages", stage=stages - 1)
    if job.fault == "layers":
        return Fault("layers", stage=stages // 2)
    if job.fault == "machine":
        host = int(rng.integers(job.world // job.per_host))
        return Fault("machine", ranks=tuple(range(host * job.per_host, (host + 1) * job.per_host)))
    if job.fault == "link":
        return Fault("link", ranks=_choose_link(plan, rng))
    if job.fault == "input":
        return Fault("input", ranks=(int(rng.choice(sorted({one.rank for one in plan.work if one.kind == "input"}))),))
    return Fault(job.fault) if job.fault else None


def _choose_link(plan: Plan, rng: np.random.Generator) -> tuple[int, ...]:
    axis = "pipeline" if plan.job.kind in SCHEDULES else "data" if plan.job.kind == "tensor" else plan.job.kind
    members = sorted({one.members for one in plan.work if one.kind.startswith(axis)})
    return tuple(sorted(members[rng.integers(len(members))]))  # an all-to-all does not tell which of its links is slow


def apply_fault(plan: Plan, fault: Fault | None, strength: float) -> F64:
    """The spans of all nodes with the fault."""
    spans = np.array(plan.graph.span)
    if fault is None or fault.cause == "layers":
        return spans
    columns, rng = plan.columns, np.random.default_rng([plan.job.seed, 8])
    kind, rank = columns["kind"], columns["rank"]
    own = spans[columns["node"]]
    on_device = np.isin(kind, ON_DEVICE)
    if fault.cause == "stages":
        own[np.isin(kind, ("loss", "loss_backward"))] *= 1 + strength
    elif fault.cause == "machine":
        own[on_device & np.isin(rank, fault.ranks)] *= 1 + strength
    elif fault.cause == "sequences":
        varying = columns["sequence"] != 0
        factor = np.exp(strength * columns["sequence"][varying])
        own[varying] *= factor / factor.mean()
    elif fault.cause == "garbage":
        own[_paused(plan, rng)] += 1000 * strength
    elif fault.cause == "link":
        own[[len(one.members) > 1 and set(fault.ranks) <= set(one.members) for one in plan.work]] *= 1 + strength
    else:
        own[(kind == "input") & np.isin(rank, fault.ranks)] += 1000 * strength
    spans[columns["node"]] = own
    return spans


def _paused(plan: Plan, rng: np.random.Generator) -> list[int]:
    """The work of the host in which garbage is collected: in some steps of each rank, once."""
    rows = np.flatnonzero(plan.columns["kind"] == "host")
    own = plan.columns["rank"][rows] * plan.job.steps + plan.columns["step"][rows]
    each = np.split(rows, np.flatnonzero(np.diff(own)) + 1)
    return [int(rng.choice(rows)) for rows in each if rng.random() < PAUSE_CHANCE]


def find_strength(plan: Plan, fault: Fault) -> float:
    """How strong the fault is that slows the job down as much as was asked for."""

    def slowdowns(strengths: F64) -> F64:
        spans = np.stack([apply_fault(plan, fault, 0.0), *(apply_fault(plan, fault, one) for one in strengths)], axis=1)
        means = plan.steps_us(spans).mean(axis=0)
        return means[1:] / means[0]

    wide = 0.02 * 4.0 ** np.arange(5 if fault.cause == "sequences" else 11)
    found = slowdowns(wide)
    above = int(np.argmax(found >= plan.job.slowdown))
    if found[above] < plan.job.slowdown:
        raise ValueError(f"no {fault.cause} slows this job down {plan.job.slowdown} times")
    near = np.linspace(wide[above - 1] if above else 0.0, wide[above], 9)
    return float(np.interp(plan.job.slowdown, slowdowns(near), near))


# ---- the truth -------------------------------------------------------------------------------------------------------


def _kinds_of_ops(plan: Plan) -> np.ndarray:
    """The kind of each work's op: the loss is part of a forward and a backward pass."""
    op = {"loss": "forward", "loss_backward": "backward"}
    return np.array([op.get(one, one) for one in plan.columns["kind"].tolist()])


def equal_work(plan: Plan, spans: F64) -> F64:
    """The spans of the work if in each step each op of a device took as long as the mean of its kind, transfers and the
    work of threads as long as the median.

    An op is all that a rank does of one kind for one microbatch; its kernels keep their shares.
    """
    columns = plan.columns
    _, code = np.unique(_kinds_of_ops(plan), return_inverse=True)
    keys = np.stack([columns["step"], code, columns["rank"], columns["part"], columns["microbatch"]], axis=1)
    transfers = np.array([len(one.members) > 1 for one in plan.work])
    keys[transfers, 2:] = np.arange(int(transfers.sum()))[:, None]
    _, first, op = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    own = spans[columns["node"]]
    length = np.bincount(op.reshape(-1), own)
    _, alike = np.unique(keys[first, :2], axis=0, return_inverse=True)
    alike = alike.reshape(-1)
    target = np.empty_like(length)
    is_shared = ~transfers & np.isin(columns["kind"], ON_DEVICE)
    for each in range(int(alike.max()) + 1):
        rows = alike == each
        target[rows] = length[rows].mean() if is_shared[first[rows][0]] else np.median(length[rows])
    factor: F64 = np.divide(target, length, out=np.ones_like(length), where=length > 0)
    return own * factor[op.reshape(-1)]


def tell_truth(plan: Plan, fault: Fault | None) -> dict[str, object]:
    """What is wrong with the job, and how long its steps are as they are, healthy, and with equal work."""
    job, columns = plan.job, plan.columns
    healthy = build_plan(replace(job, fault=None)) if job.fault == "layers" else plan
    spans = apply_fault(plan, fault, fault.strength if fault else 0.0)
    stage = np.array([job.place(rank)["pipeline"] for rank in range(job.world)])[columns["rank"]]
    of_kind = _kinds_of_ops(plan)
    kinds = np.unique(of_kind).tolist()
    worst = _worst_rank(plan, spans)
    repaired = {
        **{("stage", each): stage != each for each in range(job.sizes["pipeline"])},
        **{("kind", each): of_kind != each for each in kinds},
        ("only", "last_stage"): stage == job.sizes["pipeline"] - 1,
        ("only", "worst_worker"): columns["rank"] == worst,
    }
    equal, nodes = equal_work(plan, spans), columns["node"]
    variants = np.repeat(spans[:, None], 2 + len(repaired), axis=1)
    for at, changed in enumerate([np.ones(len(nodes), bool), *repaired.values()]):
        variants[nodes[changed], at + 1] = equal[changed]
    steps = plan.steps_us(variants)
    mean = steps.mean(axis=0)
    found = dict(zip(repaired, mean[2:].tolist(), strict=True))
    waste = max(mean[0] - mean[1], 1e-9)
    well = healthy.steps_us(np.array(healthy.graph.span)[:, None])[:, 0]
    return {
        "fault": asdict(fault) if fault else None,
        "step_ms": (steps[:, 0] / 1e3).tolist(),
        "equal_step_ms": (steps[:, 1] / 1e3).tolist(),
        "healthy_step_ms": (well / 1e3).tolist(),
        "slowdown": mean[0] / mean[1],
        "fault_slowdown": mean[0] / well.mean(),
        "slowdown_of_stage": {at: found["stage", at] / mean[1] for at in range(job.sizes["pipeline"])},
        "slowdown_of_kind": {at: found["kind", at] / mean[1] for at in kinds},
        "worst_worker": worst,
        "explained_by_worst_worker": (mean[0] - found["only", "worst_worker"]) / waste,
        "explained_by_last_stage": (mean[0] - found["only", "last_stage"]) / waste,
    }


def _worst_rank(plan: Plan, spans: F64) -> int:
    """The rank that has most to do by itself."""
    alone = [len(one.members) == 1 for one in plan.work]
    own = plan.columns["rank"][alone]
    return int(np.argmax(np.bincount(own, spans[plan.columns["node"][alone]])))
