"""The answer for a job that hung or crashed: what it waits for or what it lacked, before any share of time."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.facts.stopped import Hang, find_hang
from stepscope.analysis.steps.verdict import Verdict

OF_JOB = "job."  # how the ids of this advice begin

_HANG_ACTIONS = (
    "compare the branches that the ranks take before it: every rank has to make the same collectives in the same order",
    "if it died instead: its own log says why, and the others wait until their timeout",
)
_MEMORY_ACTIONS = (
    "see which lines hold the memory (stepscope memory-profile)",
    "use a smaller batch, or compute activations again (torch.utils.checkpoint, jax.checkpoint, tf.recompute_grad)",
)


def advise_on_end(context: Context) -> tuple[Advice, Verdict, bool] | None:
    """The advice on what ended the job, its headline, and whether nothing else can be said of it; None if nothing shows
    that it ended."""
    ends = [host.end for host in context.hosts if host.end is not None]
    hang = find_hang(ends)
    if hang is not None:
        return (
            _advise_hang(hang),
            _judge(f"hang: rank {hang.rows[0]['rank']} did not come to {_what(hang)}", hang.sentences),
            True,
        )
    crash = next((end.crash for end in ends if end.crash), "")
    if not crash:
        return None
    headline, *details = crash.split("; ")
    return _advise_crash(crash), _judge(headline, details), context.account is None


def _what(hang: Hang) -> str:
    return "{operation} #{number}".format(**hang.rows[0])


def _judge(sentence: str, evidence: Sequence[str]) -> Verdict:
    return Verdict("unknown", None, sentence, None, tuple(evidence))


def _advise_hang(hang: Hang) -> Advice:
    first = hang.rows[0]
    at = f"rank {first['rank']} was last seen at {first['at']}" if first["at"] else f"see where rank {first['rank']} is"
    waits = f"; the others wait at {first['others_at']}" if first["others_at"] else ""
    return Advice(
        id=f"{OF_JOB}hang", kind="none", title=f"Find out why rank {first['rank']} did not come to {_what(hang)}",
        evidence="; ".join(hang.sentences), predicted_speedup=None, actions=(at + waits, *_HANG_ACTIONS),
        tool="distributed", confidence=0.9, reasoning="a job that stands still has no step that could be shorter",
    )  # fmt: skip


def _advise_crash(crash: str) -> Advice:
    return Advice(
        id=f"{OF_JOB}out-of-memory", kind="memory_churn", title="Make the program fit into the memory", evidence=crash,
        predicted_speedup=None, actions=_MEMORY_ACTIONS, tool="memory-profile", confidence=0.9,
        reasoning="the program ended before it could be faster",
    )  # fmt: skip
