"""Training jobs of many ranks, whose times and faults are known because they are simulated.

    python -m bench.jobs FOLDER --kind 1f1b --world 8 --fault stages

writes one PyTorch trace a rank, and `truth.json`: what was planted, and what the job gains without it or with equal
work, each from a simulation of its own.  A fault is made as strong as it takes to slow the job down by `slowdown`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.schedules import SCHEDULES, Action, order_stage, place_transfers
from bench.simulate import CALL_US, F64, Event, Graph, Peer, Process

KINDS = ("ddp", "fsdp", "tensor", "expert", "context", *SCHEDULES)
FAULTS = ("stages", "layers", "sequences", "machine", "garbage", "link", "input")
COMPUTE, AXES = 7, {"tensor": 20, "context": 22, "expert": 24, "data": 28, "pipeline": 30, "embedding": 36}
ATTENTION_US, MLP_US, EMBEDDING_US, LOSS_US, OPTIMIZER_US = 700.0, 1300.0, 60.0, 100.0, 400.0
TRANSFER_US = {"tensor": 80.0, "context": 150.0, "expert": 200.0, "data": 400.0, "pipeline": 120.0, "embedding": 100.0}
LAYER_HOST_US, INPUT_US = 60.0, 300.0
NOISE = {"kernel": 0.01, "transfer": 0.03, "host": 0.1}
PAUSE_CHANCE = 0.4  # of a garbage collection in a step of a rank


@dataclass(frozen=True)
class Job:
    """A job: its parallelism, its size, and what is wrong with it.

    Attributes:
        kind: one of KINDS.
        batched: a stage's sends and receives between two computations are one kernel, as `batch_isend_irecv` has it,
            and the kernel's own arguments are missing; else each is a kernel, on a stream of its pair.
        peers: sends and receives name their partner; else each pair has a group of its own.
        autograd: the backward pass is started by a thread of its own, as PyTorch does.
        fault: one of FAULTS; None for a healthy job.
        slowdown: how much the fault slows the job down.
        skew_ms: clocks of machines are wrong by up to this, either way.
    """

    kind: str = "1f1b"
    world: int = 8
    steps: int = 4
    microbatches: int = 8
    layers: int = 3
    chunks: int = 2
    batched: bool = True
    peers: bool = True
    autograd: bool = True
    fault: str | None = None
    slowdown: float = 1.3
    noise: float = 1.0
    skew_ms: float = 2.0
    seed: int = 1

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many ranks each axis has; the fastest first, as Megatron numbers them."""
        inner = min(8, self.world // (2 if self.kind == "tensor" else 4))
        stages = (4 if self.world < 256 else 8) if self.kind in SCHEDULES else 1
        tensor = (1 if self.world < 32 else 4) if self.kind in SCHEDULES else inner if self.kind == "tensor" else 1
        context = inner if self.kind == "context" else 1
        data = self.world // (stages * tensor * context)
        return {"tensor": tensor, "context": context, "data": data, "pipeline": stages}

    @property
    def parts(self) -> int:
        """The parts of the model, over all stages."""
        return self.sizes["pipeline"] * (self.chunks if self.kind == "interleaved" else 1)

    @property
    def per_host(self) -> int:
        """The ranks of a machine."""
        return max(1, min(8, self.world // 8))

    def place(self, rank: int) -> dict[str, int]:
        """Where a rank is on each axis."""
        found = {}
        for axis, size in self.sizes.items():
            rank, found[axis] = divmod(rank, size)
        return found

    @cached_property
    def groups(self) -> dict[tuple[str, int], Group]:
        """The process group of each axis and rank."""
        named: dict[tuple[str, tuple[int, ...]], str] = {}
        places = [self.place(rank) for rank in range(self.world)]
        together: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        keys: dict[tuple[str, int], tuple[str, tuple[int, ...]]] = {}
        for rank, place in enumerate(places):
            for axis in AXES:
                own = "pipeline" if axis == "embedding" else "data" if axis == "expert" else axis
                key = tuple(at for name, at in place.items() if name not in (own, "context" * (axis == "data")))
                key += (place["data"] // min(8, self.world // 4),) if axis == "expert" else ()
                keys[axis, rank] = (axis, key)
                if axis != "embedding" or place["pipeline"] in (0, self.sizes["pipeline"] - 1):
                    together.setdefault((axis, key), []).append(rank)
        for number, key_of in enumerate(together):
            named[key_of] = str(number + 1)
        return {
            at: Group(named[key], at[0], tuple(together[key])) for at, key in keys.items() if at[1] in together[key]
        }


class Group(NamedTuple):
    """A process group."""

    name: str
    axis: str
    ranks: tuple[int, ...]


class Work(NamedTuple):
    """A node whose length a fault may change: what of which rank, step, part of the model and microbatch it is.

    A transfer belongs to the first rank that came to ask for it; `members` are all who take part.
    """

    node: int
    kind: str
    rank: int
    step: int
    part: int
    microbatch: int
    members: tuple[int, ...]
    sequence: float = 0.0


@dataclass
class Plan:
    """A job as a graph: its work, its processes, and the nodes at which each step ends."""

    job: Job
    graph: Graph = field(default_factory=Graph)
    processes: list[Process] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    marks: list[list[int]] = field(default_factory=list)

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The work as columns."""
        return {
            name: np.array([getattr(one, name) for one in self.work])
            for name in ("node", "kind", "rank", "step", "part", "microbatch", "sequence")
        }

    def steps_us(self, spans: F64) -> F64:
        """How long each step takes, with each column of spans."""
        times = self.graph.times(spans)
        ends = np.array([times[nodes].max(axis=0) for nodes in self.marks])
        return np.diff(ends, axis=0, prepend=0.0)


def build_plan(job: Job) -> Plan:
    """What all ranks of the job do, one step after another, with nothing wrong but layers that are too many."""
    plan = Plan(job, marks=[[] for _ in range(job.steps)])
    orders = _orders(job)
    rng = np.random.default_rng(job.seed)
    lengths = rng.standard_normal((job.steps, job.sizes["data"], len({one.microbatch for one in orders[0]})))
    for rank in range(job.world):
        process = Process(plan.graph, rank)
        plan.processes.append(process)
        trainer = _Trainer(plan, process, np.random.default_rng([job.seed, rank]), lengths)
        for step in range(job.steps):
            trainer.run_step(step, orders[job.place(rank)["pipeline"]])
            plan.marks[step].append(process.host_at)
    return plan


def _orders(job: Job) -> list[list[Action]]:
    if job.kind not in SCHEDULES:
        return [[Action("F", 0, 0), Action("B", 0, 0)]]
    stages = job.sizes["pipeline"]
    each = [order_stage(job.kind, stage, stages, job.microbatches, job.chunks) for stage in range(stages)]
    return place_transfers(each, job.parts)


class _Trainer:
    """One rank's training loop."""

    def __init__(self, plan: Plan, process: Process, rng: np.random.Generator, lengths: F64) -> None:
        self.plan, self.job, self.process, self.rng = plan, plan.job, process, rng
        self.rank = process.rank
        self.lengths = lengths
        self.place = self.job.place(self.rank)
        self.last = self.place["pipeline"] == self.job.sizes["pipeline"] - 1
        self.step = 0
        self.now = Action("", -1, -1)
        self.received: dict[tuple[str, int, int], Event] = {}
        self.gathered: dict[int, Event] = {}

    # ---- the step ----

    def run_step(self, step: int, order: Sequence[Action]) -> None:
        self.step, self.now, self.gathered = step, Action("", -1, -1), {}
        mark = self.process.host_at
        if self.place["pipeline"] == 0 or self.last:
            self._host("input", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", INPUT_US, "note")
        pending: list[Action] = []
        for one in order:
            if one.kind[0] in "SR" and len(one.kind) == 2:
                pending.append(one)
                continue
            self._transfer(pending)
            pending = []
            self._compute(one)
        self._transfer(pending)
        self._finish_step()
        self.process.records.append(
            self.process.records[-1]._replace(
                what="note", name=f"ProfilerStep#{step}", begin=mark, end=self.process.host_at, args={}
            )
        )

    def _finish_step(self) -> None:
        self.now = Action("O", -1, -1)
        staged = self.job.kind in SCHEDULES
        if not staged:
            self.process.order(AXES["data"], COMPUTE)
        elif self.job.sizes["data"] > 1:
            self._wait(self._collective("data", "_reduce_scatter_base"))
        if self.job.sizes["pipeline"] > 1 and ("embedding", self.rank) in self.job.groups:
            self._wait(self._collective("embedding", "allreduce"))
        self._host("host", "Optimizer.step#Adam.step", LAYER_HOST_US, "note")
        self._kernel("optimizer", "multi_tensor_apply_kernel_adam", OPTIMIZER_US)
        if staged and self.job.sizes["data"] > 1:
            self._wait(self._collective("data", "_allgather_base"))
        self.process.synchronize(COMPUTE)

    # ---- what it computes ----

    def _compute(self, one: Action) -> None:
        self.now = one
        self.process.thread = int(self.job.autograd and one.kind != "F")
        if one[:3] in self.received:
            self.process.wait_event(COMPUTE, self.received.pop(one[:3]))
        layers = range(self._layers(one.part))
        {"F": self._forward, "B": self._backward, "W": self._weights}[one.kind](layers)
        self.process.thread = 0

    def _layers(self, part: int) -> int:
        job = self.job
        stages = job.sizes["pipeline"]
        if job.fault != "layers" or part % stages != stages // 2:
            return job.layers
        slots = job.microbatches + (stages - 1) * stages / job.parts  # of which all but the bubble become longer
        return job.layers + max(1, round(job.layers * (job.slowdown - 1) * slots / job.microbatches))

    def _forward(self, layers: range) -> None:
        if self.now.part == 0:
            self._kernel("forward", "embedding_dense_kernel", EMBEDDING_US)
        for layer in layers:
            self._start_layer(layer, layer + 1 if layer + 1 < len(layers) else None)
            self._meet_inside("context")
            self._kernel("forward", "flash_fwd_kernel", ATTENTION_US, squared=True)
            self._meet_inside("tensor", "expert")
            self._kernel("forward", "cutlass_gemm_mlp_forward", MLP_US)
            self._meet_inside("tensor", "expert")
        if self.now.part == self.job.parts - 1:
            self._kernel("loss", "cutlass_gemm_logits_cross_entropy", LOSS_US)

    def _backward(self, layers: range) -> None:
        times = 1.0 if self.job.kind == "zb" else 2.0
        if self.now.part == self.job.parts - 1:
            self._kernel("loss_backward", "cutlass_gemm_logits_backward", times * LOSS_US)
        for layer in reversed(layers):
            self._start_layer(layer, layer - 1 if layer else None)
            self._kernel("backward", "cutlass_gemm_mlp_backward", times * MLP_US)
            self._meet_inside("tensor", "expert")
            self._meet_inside("context")
            self._kernel("backward", "flash_bwd_kernel", times * ATTENTION_US, squared=True)
            self._meet_inside("tensor", "expert")
            self._reduce_layer()

    def _weights(self, layers: range) -> None:
        for _ in reversed(layers):
            self._host("host", "layer", LAYER_HOST_US, "python")
            self._kernel("weight", "cutlass_gemm_weight_gradients", ATTENTION_US + MLP_US)

    def _start_layer(self, layer: int, following: int | None) -> None:
        """The host's part of a layer; a sharded job gathers its weights, and those of the next layer ahead."""
        self._host("host", "layer", LAYER_HOST_US, "python")
        if self.job.kind != "fsdp":
            return
        if layer not in self.gathered:
            self.gathered[layer] = self._collective("data", "_allgather_base")
        if following is not None:
            self.gathered[following] = self._collective("data", "_allgather_base", after_compute=False)
        self._wait(self.gathered.pop(layer))

    def _reduce_layer(self) -> None:
        if self.job.kind not in SCHEDULES and self.job.sizes["data"] > 1:
            self._collective("data", "_reduce_scatter_base" if self.job.kind == "fsdp" else "allreduce")

    def _meet_inside(self, *axes: str) -> None:
        """What the ranks of a layer tell each other in the middle of it; it is waited for."""
        for axis in axes:
            if axis == "expert" and self.job.kind == "expert":
                self._wait(self._collective("expert", "all_to_allv"))
            elif axis == "context" and self.job.sizes["context"] > 1:
                self._wait(self._ring())
            elif axis == "tensor" and self.job.sizes["tensor"] > 1:
                self._wait(self._collective("tensor", "allreduce"))

    # ---- what it tells others ----

    def _collective(self, axis: str, name: str, after_compute: bool = True) -> Event:
        group, stream = self.job.groups[axis, self.rank], AXES[axis]
        if after_compute:
            self.process.order(COMPUTE, stream)
        kind = f"{axis}_{name}"
        span = self._noisy(TRANSFER_US[axis], "transfer")
        meeting = self.process.collective(stream, group.name, name, span, {"group": group})
        self._note(meeting, kind, group.ranks)
        return self.process.record_event(stream)

    def _ring(self) -> Event:
        """Keys and values go to the next rank of a sequence, while those of the one before come."""
        group, stream = self.job.groups["context", self.rank], AXES["context"]
        at = group.ranks.index(self.rank)
        following, before = group.ranks[(at + 1) % len(group.ranks)], group.ranks[at - 1]
        self.process.order(COMPUTE, stream)
        self._exchange(stream, group, [(True, following), (False, before)], "context")
        return self.process.record_event(stream)

    def _exchange(self, stream: int, group: Group, ways: Sequence[tuple[bool, int]], kind: str) -> None:
        batched = self.job.batched or len(ways) > 1
        about = [{"group": self._group_of(group, other), "way": (is_send, other)} for is_send, other in ways]
        for each in about if batched else ():
            self.process.host("record_param_comms", CALL_US, "comm", **each)
        peers = [Peer(is_send, other, group.name) for is_send, other in ways]
        span = self._noisy(TRANSFER_US[group.axis], "transfer")
        args = {**about[0], "way": None} if batched else about[0]
        meetings = self.process.exchange(stream, "send_recv", peers, span, args)
        for meeting, (_, other) in zip(meetings, ways, strict=True):
            self._note(meeting, kind, (self.rank, other))

    def _group_of(self, group: Group, other: int) -> Group:
        """The group in which a send or receive is: that of the pair where partners are not named."""
        pair = tuple(sorted((self.rank, other)))
        return group if self.job.peers else Group(f"pair_{pair[0]}_{pair[1]}", group.axis, pair)

    def _transfer(self, pending: Sequence[Action]) -> None:
        """The sends and receives of a stage between two computations."""
        if not pending:
            return
        tensor_ranks = self.job.groups["pipeline", self.rank]
        ways = [(one.kind[0] == "S", tensor_ranks.ranks[one.peer]) for one in pending]
        if self.job.batched:
            self.process.order(COMPUTE, AXES["pipeline"])
            self._exchange(AXES["pipeline"], tensor_ranks, ways, "pipeline")
            self._expect(pending, AXES["pipeline"])
            return
        for one, way in zip(pending, ways, strict=True):
            stream = AXES["pipeline"] + 100 + one.peer
            self.process.order(COMPUTE, stream)
            self._exchange(stream, tensor_ranks, [way], "pipeline")
            self._expect([one], stream)

    def _expect(self, transfers: Sequence[Action], stream: int) -> None:
        event = self.process.record_event(stream)
        for one in transfers:
            if one.kind[0] == "R":
                self.received[one.kind[1], one.part, one.microbatch] = event

    def _wait(self, event: Event) -> None:
        self.process.wait_event(COMPUTE, event)

    # ---- lengths ----

    def _kernel(self, kind: str, name: str, span: float, squared: bool = False) -> None:
        node = self.process.kernel(COMPUTE, name, self._noisy(span, "kernel"))
        length = self.lengths[self.step, self.place["data"], self.now.microbatch] if self.now.microbatch >= 0 else 0.0
        self._note(node, kind, (self.rank,), length * (2 if squared else 1))

    def _host(self, kind: str, name: str, span: float, what: str) -> None:
        self._note(self.process.host(name, self._noisy(span, "host"), what), kind, (self.rank,))

    def _note(self, node: int, kind: str, members: tuple[int, ...], sequence: float = 0.0) -> None:
        if len(members) == 1 or self.rank == min(members):
            at = (self.step, self.now.part, self.now.microbatch)
            self.plan.work.append(Work(node, kind, self.rank, *at, members, sequence))

    def _noisy(self, span: float, kind: str) -> float:
        return span * float(np.exp(self.rng.standard_normal() * NOISE[kind] * self.job.noise))


# ---- faults ----------------------------------------------------------------------------------------------------------


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
    return tuple(sorted(members[rng.integers(len(members))][:2]))


def apply_fault(plan: Plan, fault: Fault | None, strength: float) -> F64:
    """The spans of all nodes with the fault."""
    spans = np.array(plan.graph.span)
    if fault is None or fault.cause == "layers":
        return spans
    columns, rng = plan.columns, np.random.default_rng([plan.job.seed, 8])
    kind, rank = columns["kind"], columns["rank"]
    own = spans[columns["node"]]
    on_device = np.isin(kind, ("forward", "backward", "weight", "loss", "loss_backward", "optimizer"))
    if fault.cause == "stages":
        own[np.isin(kind, ("loss", "loss_backward"))] *= 1 + strength
    elif fault.cause == "machine":
        own[on_device & np.isin(rank, fault.ranks)] *= 1 + strength
    elif fault.cause == "sequences":
        factor = np.exp(strength * columns["sequence"])
        own *= np.where(columns["sequence"] != 0, factor / factor[columns["sequence"] != 0].mean(), 1.0)
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

_OP = {"loss": "forward", "loss_backward": "backward"}


def equal_work(plan: Plan, spans: F64) -> F64:
    """The spans of the work if in each step each op of a kind took as long as the mean of them, transfers the median.

    An op is all that a rank does of one kind for one microbatch; its kernels keep their shares.
    """
    columns = plan.columns
    kind = np.array([_OP.get(one, one) for one in columns["kind"].tolist()])
    _, code = np.unique(kind, return_inverse=True)
    keys = np.stack([columns["step"], code, columns["rank"], columns["part"], columns["microbatch"]], axis=1)
    shared = np.array([len(one.members) > 1 for one in plan.work])
    keys[shared, 2:] = np.arange(int(shared.sum()))[:, None]
    _, first, op = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    own = spans[columns["node"]]
    length = np.bincount(op.reshape(-1), own)
    _, alike = np.unique(keys[first, :2], axis=0, return_inverse=True)
    alike = alike.reshape(-1)
    target = np.empty_like(length)
    for each in range(int(alike.max()) + 1):
        rows = alike == each
        target[rows] = np.median(length[rows]) if shared[first[rows][0]] else length[rows].mean()
    return own * (target / length)[op.reshape(-1)]


def tell_truth(plan: Plan, fault: Fault | None) -> dict[str, object]:
    """What is wrong with the job, and how long its steps are as they are, healthy, and with equal work."""
    job, columns = plan.job, plan.columns
    healthy = build_plan(replace(job, fault=None)) if job.fault == "layers" else plan
    spans = apply_fault(plan, fault, fault.strength if fault else 0.0)
    stage = np.array([job.place(rank)["pipeline"] for rank in columns["rank"].tolist()])
    kinds = sorted({_OP.get(one, one) for one in columns["kind"].tolist()})
    of_kind = np.array([_OP.get(one, one) for one in columns["kind"].tolist()])
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


def make_job(folder: Path, job: Job) -> dict[str, object]:
    """Simulates the job, and writes its traces and `truth.json`."""
    from bench.job_traces import write_traces

    plan = build_plan(job)
    fault = plant_fault(plan)
    spans = apply_fault(plan, fault, fault.strength if fault else 0.0)
    truth = {"job": asdict(job), "sizes": job.sizes, **tell_truth(plan, fault)}
    truth["skew_us"] = write_traces(folder, plan, plan.graph.times(spans[:, None])[:, 0], spans)
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
    return truth


def list_jobs(worlds: Sequence[int]) -> Iterator[Job]:
    """All kinds with each of their faults, and without."""
    for world in worlds:
        for kind in KINDS:
            for fault in (None, *faults_of(kind)):
                yield Job(kind, world, fault=fault)


def main() -> None:
    """Makes one job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    for each in fields(Job):
        default = each.default
        if isinstance(default, bool):
            parser.add_argument(f"--{each.name}", action=argparse.BooleanOptionalAction, default=default)
        else:
            choices = {"kind": KINDS, "fault": FAULTS}.get(each.name)
            kind = str if default is None else type(default)
            parser.add_argument(f"--{each.name.replace('_', '-')}", type=kind, default=default, choices=choices)
    options = vars(parser.parse_args())
    truth = make_job(options.pop("folder"), Job(**options))
    print(json.dumps({name: truth[name] for name in ("fault", "slowdown", "fault_slowdown", "slowdown_of_stage")}))


if __name__ == "__main__":
    main()
