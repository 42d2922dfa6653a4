"""What to change first, with the evidence and the gain to expect.

A rule is a function of the facts that answers with one piece of advice or None.  Rules stand in one list; the advice
with the largest gain comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stepscope.analysis.verdict import LARGE_SHARE, MODERATELY_INPUT_BOUND

EAGER_SHARE = 10.0  # percent of op time that runs eagerly from which a traced function is worth it
LOW_PRECISION_SHARE = 10.0  # percent of device compute at 16 bits below which mixed precision is worth a try


@dataclass(frozen=True)
class Facts:
    """What the rules look at.

    Attributes:
        shares: percent of the step time by category.
        file_read_share: of the time in input iterators, what reads files; None without input iterators.
        eager_percent: host op time that was dispatched op by op; None if unknown.
        compute_16bit_percent: device compute at 16 bits; None without device compute.
        between_steps_percent: time between steps, of steps and gaps together.
        has_prefetch: an iterator hands elements over to another thread; None without input iterators.
    """

    shares: Mapping[str, float]
    verdict: str
    file_read_share: float | None
    eager_percent: float | None
    compute_16bit_percent: float | None
    between_steps_percent: float | None
    has_prefetch: bool | None
    framework: str


@dataclass(frozen=True)
class Advice:
    """One thing to change.

    Attributes:
        id: stable name of the rule.
        kind: one of the contract's classes (`class` in JSON).
        evidence: the measured facts behind it, one sentence.
        predicted_speedup: step time now over step time if the cause vanished: an upper bound; None if unknown.
        actions: what to do, most effective first.
        tool: the tool that shows the details.
    """

    id: str
    kind: str
    title: str
    evidence: str
    predicted_speedup: float | None
    actions: tuple[str, ...]
    tool: str

    def to_dict(self) -> dict[str, Any]:
        """The item as in JSON."""
        item = asdict(self)
        item["class"] = item.pop("kind")
        item["actions"] = list(self.actions)
        return item


def _speedup(share: float) -> float | None:
    """Step time over the step time without a share of it, in percent."""
    return round(100.0 / (100.0 - share), 2) if share < 100.0 else None


def _input(facts: Facts) -> Advice | None:
    share = facts.shares.get("input", 0.0)
    if share < MODERATELY_INPUT_BOUND:
        return None
    kind, title, actions = _input_cause(facts)
    return Advice(
        id=f"input.{kind}",
        kind=kind,
        title=title,
        evidence=f"{share:.1f} % of the step time waits for input or copies it to the device",
        predicted_speedup=_speedup(share),
        actions=actions,
        tool="overview",
    )


_AHEAD = {
    "tensorflow": (
        ".prefetch(tf.data.AUTOTUNE) at the end of the dataset",
        "map(..., num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    "pytorch": (
        "DataLoader(num_workers=4 or more, persistent_workers=True)",
        "DataLoader(pin_memory=True) and .to(non_blocking=True)",
    ),
    "": ("load the next batch in another thread or process while the step runs",),
}
_FASTER = {
    "tensorflow": (
        "map(..., num_parallel_calls=tf.data.AUTOTUNE)",
        "batch first, then map over whole batches",
        "cache() what does not change, or prepare it offline",
    ),
    "pytorch": (
        "DataLoader(num_workers=4 or more, persistent_workers=True), so that items are made while the step runs",
        "work on whole tensors in __getitem__ and collate_fn instead of in Python loops",
        "prepare what does not change offline",
    ),
    "": ("prepare batches in several threads or processes", "prepare what does not change offline"),
}
_READS = (
    "pack many small files into few large ones",
    "read several files at once: interleave(..., num_parallel_calls=tf.data.AUTOTUNE)",
    "read ahead: prefetch(tf.data.AUTOTUNE)",
)


def _for(framework: str, actions: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return actions.get(framework, actions[""])


def _input_cause(facts: Facts) -> tuple[str, str, tuple[str, ...]]:
    """Class, title and actions for what makes the input slow, as far as the overview can tell."""
    if (facts.file_read_share or 0.0) >= 50.0:
        return "input_file_read", "Read files ahead and in parallel", _READS
    if facts.has_prefetch is False:
        return "input_no_prefetch", "Prepare the next batch while the step runs", _for(facts.framework, _AHEAD)
    kind = "input_python" if facts.framework == "pytorch" else "input_preprocessing"
    return kind, "Make the preparation of input faster", _for(facts.framework, _FASTER)


def _compilation(facts: Facts) -> Advice | None:
    share = facts.shares.get("compilation", 0.0)
    if share < MODERATELY_INPUT_BOUND:
        return None
    return Advice(
        id="compile.again",
        kind="recompilation",
        title="Stop tracing and compiling in every step",
        evidence=f"{share:.1f} % of the step time traces or compiles programs",
        predicted_speedup=_speedup(share),
        actions=(
            "pass changing numbers as tensors, not as Python values",
            "keep shapes constant: pad, or drop the last batch",
            "declare input_signature (TensorFlow) or static_argnums only for what rarely changes (JAX)",
        ),
        tool="steps",
    )


def _launch(facts: Facts) -> Advice | None:
    share = facts.shares.get("kernel_launch", 0.0)
    if share < LARGE_SHARE:
        return None
    return Advice(
        id="launch.bound",
        kind="eager_dispatch",
        title="Launch fewer or larger pieces of device work",
        evidence=f"{share:.1f} % of the step time launches device work while no device computes",
        predicted_speedup=_speedup(share),
        actions=(
            "compile the step as a whole (tf.function(jit_compile=True), jax.jit, torch.compile)",
            "use larger batches",
        ),
        tool="steps",
    )


def _eager(facts: Facts) -> Advice | None:
    share = facts.eager_percent
    if share is None or share < EAGER_SHARE:
        return None
    return Advice(
        id="eager.ops",
        kind="eager_dispatch",
        title="Compile the step instead of running it op by op",
        evidence=f"{share:.1f} % of the op time on the host belongs to ops that were dispatched one by one",
        predicted_speedup=None,
        actions=("wrap the whole step in tf.function, jax.jit or torch.compile",),
        tool="overview",
    )


def _communication(facts: Facts) -> Advice | None:
    share = facts.shares.get("device_collectives", 0.0)
    if share < LARGE_SHARE:
        return None
    return Advice(
        id="communication.bound",
        kind="communication_bound",
        title="Hide or shrink the communication between workers",
        evidence=f"{share:.1f} % of the step time is collectives that no computation hides",
        predicted_speedup=_speedup(share),
        actions=("reduce gradients in larger buckets while the backward pass runs", "communicate in 16 bits"),
        tool="steps",
    )


def _precision(facts: Facts) -> Advice | None:
    share, compute = facts.compute_16bit_percent, facts.shares.get("device_compute", 0.0)
    if share is None or share >= LOW_PRECISION_SHARE or compute < 50.0:
        return None
    return Advice(
        id="precision.low",
        kind="low_precision",
        title="Compute in 16 bits",
        evidence=f"only {share:.1f} % of the device's compute time uses 16-bit numbers",
        predicted_speedup=None,
        actions=("try mixed precision (bfloat16 or float16 with loss scaling)",),
        tool="overview",
    )


def _between_steps(facts: Facts) -> Advice | None:
    share = facts.between_steps_percent
    if share is None or share < LARGE_SHARE:
        return None
    return Advice(
        id="python.between-steps",
        kind="python_overhead",
        title="Shorten what the program does between steps",
        evidence=f"{share:.1f} % of the time from the first step to the last lies between steps",
        predicted_speedup=_speedup(share),
        actions=(
            "log, evaluate and save less often, or in another thread",
            "record Python calls to see what runs there",
        ),
        tool="steps",
    )


RULES: tuple[Callable[[Facts], Advice | None], ...] = (
    _compilation,
    _input,
    _launch,
    _eager,
    _communication,
    _between_steps,
    _precision,
)


def advise(facts: Facts) -> tuple[Advice, ...]:
    """All advice that applies, largest predicted gain first; rules of unknown gain follow in their order."""
    found = [advice for rule in RULES if (advice := rule(facts)) is not None]
    found.sort(key=lambda advice: -(advice.predicted_speedup or 0.0))
    if found or facts.verdict == "unknown":
        return tuple(found)
    return (
        Advice(
            id="none",
            kind="none",
            title="Nothing stands out",
            evidence="no category of the step time exceeds the threshold from which a change pays",
            predicted_speedup=None,
            actions=("look at the top ops: the step is as fast as its computation",),
            tool="overview",
        ),
    )
