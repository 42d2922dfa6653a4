"""Collectives take time that no computation overlaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Interval, Row
from stepscope.analysis.advice.rule import Actions, Finding, Rule, actions_for, predict_change
from stepscope.analysis.advice.rules.words import WORDS_OF_CLASS
from stepscope.analysis.facts.device_facts import SHORT_COLLECTIVE_PS
from stepscope.analysis.facts.loop_events import Starts
from stepscope.analysis.facts.strategy import EXCHANGE, EXPERT, MIRRORED, SHARDED, TENSOR, SentBuffers
from stepscope.analysis.steps.verdict import LARGE_SHARE, LEAST_PERCENT
from stepscope.report import amount, number_text, size_text
from stepscope.vocabulary.collectives import PIPELINE

if TYPE_CHECKING:
    from stepscope.analysis.workers.distributed_tool import DistributedReport

_MANY_MESSAGES = 8.0  # per step; from here on their number costs, not only their size
_FEW_MESSAGES_PERCENT = 30.0  # threshold for a few large messages: data parallelism has its price

# What there is to do for a way of spreading the model, where it is known.
_BY_STRATEGY: Actions = {
    "ddp": (
        "try other bucket sizes: DistributedDataParallel(model, bucket_cap_mb=100, gradient_as_bucket_view=True);"
        " larger for many small messages, smaller if only the last one is exposed",
        "if a step accumulates gradients: run all micro-batches but the last under"
        " torch.nn.parallel.DistributedDataParallel.no_sync, which reduces nothing",
        "communicate in 16 bits: model.register_comm_hook(None, default_hooks.fp16_compress_hook), of"
        " torch.distributed.algorithms.ddp_comm_hooks",
        "static_graph=True without find_unused_parameters=True lets the reduction start earlier",
    ),
    SHARDED: (
        "fetch the next block's parameters early: FullyShardedDataParallel(forward_prefetch=True,"
        " limit_all_gathers=True), or set_modules_to_forward_prefetch of fully_shard",
        "wrap larger blocks (auto_wrap_policy, or fully_shard on them), so that fewer and larger messages are sent",
        "gather less often: reshard_after_forward=False (SHARD_GRAD_OP) keeps parameters for the backward pass, if the"
        " memory suffices",
        "shard within a machine only (HYBRID_SHARD, or a mesh of two dimensions), or communicate in 16 bits"
        " (MixedPrecision)",
    ),
    TENSOR: (
        "keep tensor parallelism within a machine, on its fastest links, and use fewer ranks for it",
        "split the sequence as well (sequence parallelism): reduce_scatter and all_gather overlap with products,"
        " all_reduce does not",
    ),
    PIPELINE: (
        "use more micro-batches per step, so that stages wait less: the bubble is (stages - 1) / micro-batches",
        "give all stages equal work, or interleave them (ScheduleInterleaved1F1B of torch.distributed.pipelining)",
    ),
    EXPERT: (
        "spread tokens over experts more evenly, or lower the capacity factor: the fullest expert sets the pace",
        "overlap the exchange with computation of shared layers, or keep experts within a machine",
    ),
    EXCHANGE: (
        "spread what is exchanged (tables of embeddings, experts) evenly by its use: the fullest rank sets the pace",
        "start the exchange for the next batch while this one computes, as torchrec's TrainPipelineSparseDist does for"
        " embeddings, or shared layers beside it",
        "exchange 16 bits instead of 32 (of torchrec: QCommsConfig), and keep the ranks that exchange within a machine",
    ),
    "context": ("overlap the exchange of keys and values with attention (ring attention), or use fewer ranks for it",),
    MIRRORED: (
        "reduce gradients together: tf.distribute.experimental.CommunicationOptions(bytes_per_pack=...)",
        "give every replica a larger batch, so that steps communicate less often per sample",
        "within a machine: MirroredStrategy(cross_device_ops=tf.distribute.NcclAllReduce(num_packs=2))",
    ),
}
_BUFFERS = (
    "DistributedDataParallel(model, broadcast_buffers=False), if no buffer changes while the model trains, as the"
    " statistics of BatchNorm do, or each rank may have its own",
    "or keep large tables that stay out of the buffers: a plain attribute, or one that"
    " _set_params_and_buffers_to_ignore_for_model names",
)
_WAITING = "Let the ranks meet: most of the communication waits for others"
_MEET_EARLIER = (
    "what is sent takes a small part of that time: see which rank comes last, and what its host does before (stepscope"
    " distributed)"
)
_ACCUMULATES = 2.0  # backward passes per step


def _choose_actions(context: Context) -> tuple[str, ...]:
    """The actions for how the model is spread, if that is known; no_sync first if the step accumulates."""
    strategy = context.pace.strategy
    if strategy not in _BY_STRATEGY or (context.framework == "jax" and strategy == SHARDED):
        return actions_for(context.framework, WORDS_OF_CLASS["communication_bound"].actions)
    actions = _BY_STRATEGY[strategy]
    if _reduced_passes(context) > 1:
        actions = (actions[1], actions[0], *actions[2:])
    return actions


def _reduced_passes(context: Context) -> float:
    """How many backward passes of a step DDP reduces the gradients of, where one would do; else 1, as under `no_sync`,
    which leaves fewer messages than passes."""
    passes = context.work.backward_passes / max(context.work.steps, 1)
    is_reduced = context.pace.strategy == "ddp" and _count_messages(context)[0] >= passes >= _ACCUMULATES
    return passes if is_reduced else 1.0


def _find_exposed(context: Context) -> Finding | None:
    exposed = _exposed_ms(context)
    buffers = context.pace.buffers
    if buffers and 2 * buffers.share > 1 and context.percent(exposed * buffers.share) >= LEAST_PERCENT:
        return _find_buffers(context, buffers, exposed)
    messages, many = _count_messages(context)
    least = LARGE_SHARE if many or context.has_device else _FEW_MESSAGES_PERCENT
    passes = _reduced_passes(context)
    if passes > 1:
        least = LEAST_PERCENT  # no price of data parallelism: only the last reduction is needed
    if context.percent(exposed) < least:
        return None
    count = f"{messages:.0f} messages per step" if messages else ""
    compared = context.read("distributed")
    collectives = compared.collectives if compared else ()
    waits = all(host.device.collectives_wait for host in context.hosts if host.device is not None)
    waits = waits and context.has_device
    actions, first = _choose_actions(context), () if many else _await_others(context)
    if waits:  # what is sent is not what takes long
        first, actions = (_MEET_EARLIER,), tuple(each for each in actions if "16 bits" not in each)
    return Finding(
        part_ms=exposed,
        least_percent=least,
        title=_WAITING if waits else "Communicate in fewer, larger messages" if many else "",
        share=f"{context.percent(exposed):.1f} % of each step only communicates",
        evidence=f"{count}{_describe_bandwidth(collectives)}",
        change="overlap" if context.has_device else "last_pass" if passes > 1 else "communication",
        without="exposed communication",
        parts=("communication",),
        # Of many messages each waits for the others a little: fewer are awaited less.
        actions=(*first, *actions[:1], *_record_all_ranks(compared), *actions[1:]),
        tool="distributed" if collectives else "",
        confidence=0.9 if many else 0.7,
        rows=(Row("overview", "communication", round(exposed, 3)),),
        intervals=_collective_intervals(context),
    )


def _find_buffers(context: Context, buffers: SentBuffers, exposed_ms: float) -> Finding:
    """Communication that mostly sends buffers of the model to all ranks."""
    part, size = exposed_ms * buffers.share, size_text(round(buffers.bytes))
    change = "overlap" if context.has_device else "communication"
    gain = predict_change(context, change, part, "sending buffers")
    return Finding(
        part_ms=part,
        id="communication.buffers",
        title=f"Do not send {size} of buffers from rank 0 in every step",
        share=f"{context.percent(part):.1f} % of each step sends buffers of the model from one rank to all",
        evidence=f"{size} per step, before the forward pass of DistributedDataParallel",
        gain=gain.of_part(buffers.share),
        parts=("communication",),
        actions=_BUFFERS,
        tool="distributed",
        confidence=0.9,
        rows=(Row("overview", "communication", round(part, 3)),),
        intervals=_collective_intervals(context),
    )


def _await_others(context: Context) -> Sequence[str]:
    """What to look at first where most of the time only waits for other processes: larger messages do not shorten
    that."""
    if not any(0 < line.own_ps <= 2 * line.peers_ps for line in context.lines):
        return ()
    return ("look at the other ranks first, which arrive later: record them all, and see `stepscope distributed`",)


def _collective_intervals(context: Context) -> tuple[Interval, ...]:
    """The longest collectives: on the devices if they communicate, else on the host."""
    device = context.device
    return (device and context.work_places(device.communicating)) or context.intervals("communication")


def _describe_bandwidth(collectives: Sequence[Mapping[str, Any]]) -> str:
    """The bus bandwidth of the largest collective: far below the link's means waiting, not moving data."""
    largest = next((each for each in collectives if each["bus_gb_per_s"]), None)
    if largest is None:
        return ""
    size, speed = size_text(largest["bytes"]), number_text(largest["bus_gb_per_s"])
    return f"; {largest['operation']} of {size} reaches {speed} GB/s of bus bandwidth"


def _record_all_ranks(compared: DistributedReport | None) -> Sequence[str]:
    """What to record if ranks that may be late were not; never first, since only the tool `advice` compares ranks."""
    here = len(compared.rows) if compared else 0
    world = round(max((amount(each["ranks"]) for each in compared.collectives), default=0)) if compared else 0
    if not 0 < here < world:
        return ()
    return (
        f"record all {world} ranks ({here} {'is' if here == 1 else 'are'} present): a collective lasts until the last"
        " rank arrives, so apparently slow communication may be waiting for a slow rank",
    )


def _count_messages(context: Context) -> tuple[float, bool]:
    """Messages per step, and whether their number is what costs."""
    device = context.device
    if not context.has_device or device is None:
        messages = context.calls(Starts.COLLECTIVE)
        return messages, messages > _MANY_MESSAGES
    messages = device.collectives / device.steps
    return messages, messages > _MANY_MESSAGES and device.collective_ps < SHORT_COLLECTIVE_PS


def _exposed_ms(context: Context) -> float:
    """Time per step that every host spends in exposed collectives; anything beyond that is waiting for another host."""
    if context.has_device:
        devices = [host.device for host in context.hosts if host.device is not None]
        return min((each.per_step_ms(each.exposed_collectives_ps) for each in devices), default=0.0)
    accounts = [host.account for host in context.hosts if host.account is not None]
    percent = min((each.mean_percent.get("communication", 0.0) for each in accounts), default=0.0)
    return percent * context.period_ms / 100


RULES = (
    Rule(
        "communication.exposed", kind="communication_bound", find=_find_exposed,
        title="Overlap or shrink the communication", tool="pod-viewer", yields_to=("straggler",),
    ),
)  # fmt: skip
