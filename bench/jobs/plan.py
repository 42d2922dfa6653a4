"""What the ranks of a training job do, step by step, as a graph of nodes.

Lengths are those of a large transformer on a current GPU, rounded; a fault changes them, and what follows is simulated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bench.jobs.schedules import SCHEDULES, Action, order_stage, place_transfers
from bench.jobs.simulate import CALL_US, F64, Event, Graph, Peer, Process

KINDS = ("ddp", "fsdp", "tensor", "expert", "context", *SCHEDULES)
COMPUTE, AXES = 7, {"tensor": 20, "context": 22, "expert": 24, "data": 28, "pipeline": 30, "embedding": 36}
ATTENTION_US, MLP_US, EMBEDDING_US, LOSS_US, OPTIMIZER_US = 700.0, 1300.0, 60.0, 100.0, 400.0
TRANSFER_US = {"tensor": 80.0, "context": 150.0, "expert": 200.0, "data": 400.0, "pipeline": 120.0, "embedding": 100.0}
LAYER_HOST_US, INPUT_US = 60.0, 300.0
NOISE = {"kernel": 0.01, "transfer": 0.03, "host": 0.1}


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
        members: dict[tuple[str, ...], list[int]] = defaultdict(list)
        keys: dict[tuple[str, int], tuple[str, ...]] = {}
        for rank in range(self.world):
            place = self.place(rank)
            block = place["data"] // min(8, self.world // 4)
            for axis in AXES:
                over = {"data": ("data", "context"), "expert": ("data",), "embedding": ("pipeline",)}.get(axis, (axis,))
                key = (axis, *(f"{name}{at}" for name, at in place.items() if name not in over))
                key += (f"block{block}",) if axis == "expert" else ()
                if axis != "embedding" or place["pipeline"] in (0, self.sizes["pipeline"] - 1):
                    members[key].append(rank)
                    keys[axis, rank] = key
        names = {key: str(number + 1) for number, key in enumerate(members)}
        return {at: Group(names[key], at[0], tuple(members[key])) for at, key in keys.items()}


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
            begin = self.process.host_at
            self._start_layer(layer, layer - 1 if layer else None)
            self._kernel("backward", "cutlass_gemm_mlp_backward", times * MLP_US)
            self._meet_inside("tensor", "expert")
            self._meet_inside("context")
            self._kernel("backward", "flash_bwd_kernel", times * ATTENTION_US, squared=True)
            self._meet_inside("tensor", "expert")
            self._reduce_layer()
            self._evaluate("LayerBackward", begin)

    def _weights(self, layers: range) -> None:
        for _ in reversed(layers):
            begin = self.process.host_at
            self._host("host", "layer", LAYER_HOST_US, "python")
            self._kernel("weight", "cutlass_gemm_weight_gradients", ATTENTION_US + MLP_US)
            self._evaluate("WeightBackward", begin)

    def _evaluate(self, name: str, begin: int) -> None:
        """Autograd's call around what its thread does for a layer."""
        if self.process.thread:
            self.process.enclose(f"autograd::engine::evaluate_function: {name}", begin)

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
