"""The answer for a job that hung or crashed: what it waits for or what it lacked, before any share of time."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.facts.stopped import EndFacts, Hang, Holder, find_hang, kept_first
from stepscope.analysis.resources.counted_memory import CRASH, RefusedRequest
from stepscope.analysis.steps.verdict import Verdict
from stepscope.report import Cell, Field, Role, percent, size_text
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.python import place_of

OF_JOB = "job."  # how the ids of this advice begin

_HANG_ACTIONS = (
    "compare the branches that the ranks take before it: every rank has to make the same collectives in the same order",
    "if it died instead: its own log says why, and the others wait until their timeout",
)
_SMALLER = (
    "use a smaller batch, or compute activations again (torch.utils.checkpoint, jax.checkpoint, tf.recompute_grad)"
)
_WITH_GRAPH = "with their graph"  # of arrays that hold all from which they were computed
_DETACH = "keep numbers (loss.item()) or tensor.detach(): what is kept now holds the whole backward graph"
_IN_PIECES = (
    "make the result for a part of the rows at a time, and reduce each part before the next",
    "if the size is a surprise, print the shapes that meet there: one axis too many is broadcast",
)
_KEEP_FEWER = "keep the last few only (collections.deque(maxlen=...)), or write them to a file"

# As the reader of a snapshot writes it.
_REFUSED = Pattern(
    r"GPU (?P<device>\d+) was out of memory: (?P<size>[\d,]+) bytes were refused and (?P<free>[\d,]+) were free"
    r"(?:, asked for by (?P<frame>.+))?"
)
_HELD = "what holds most: "  # begins what the holders say better

# The purposes of memory by what a count of the program's arrays calls them.
_PURPOSES = {"state of the optimizer": "optimizer_state", f"arrays {_WITH_GRAPH}": "activations"}

FILLED_FIELDS: tuple[Field, ...] = (
    Field("holder", "text", "the variable or the layer that holds it, where one does", "str", Role.NAME),
    Field("place", "text", "the line that adds to it, sets it or allocated it", "str", Role.SOURCE),
    Field("held_bytes", "bytes", "its bytes when memory ran out", "int", label="Held"),
    Field("percent", "percent", "the same as a share of all that was counted then"),
    Field(
        "kind", "text", "what it is for, as in `memory-profile`, or what it is: arrays, objects", "str", role=Role.TERM
    ),
    Field("bytes_per_step", "bytes", "what each step adds; unknown where steps add none", label="Each step adds"),
    Field("count", "count", "its arrays or allocations", "int"),
    Field("host", "text", "the host whose memory ran out", "str", Role.HOST),
)


def advise_on_end(context: Context) -> tuple[Advice, Verdict, bool] | None:
    """The advice on what ended the job, its headline, and whether nothing else can be said of it; None if nothing shows
    that it ended."""
    ends = [host.end for host in context.hosts if host.end is not None]
    hang = find_hang(ends)
    if hang is not None:
        return (
            _advise_hang(hang),
            _judge("hang", f"rank {hang.rows[0]['rank']} did not come to {_name_missed(hang)}", hang.sentences),
            True,
        )
    crashed = next((end for end in ends if end.crash), None)
    failed = next((end.failure for end in ends if end.failure), "")
    if crashed is None and failed and not context.has_steps:
        return _advise_failed(failed), _judge("ended early", f"the program ended with {failed}", ()), True
    if crashed is None:
        shown = next((end for end in ends if end.is_snapshot and end.holders), None)
        return None if shown is None else (*_answer_snapshot(shown.holders), True)
    headline, *details = crashed.crash.split("; ")
    request = crashed.asks_too_much
    advice = _advise_less(request, crashed.holders) if request else _advise_crash(crashed.crash, crashed.holders)
    return advice, _judge_crash(headline, details, crashed), context.account is None


def filled_rows(context: Context) -> tuple[dict[str, Cell], ...]:
    """What filled the memory of the first host that ran out of it, or that a snapshot shows; see FILLED_FIELDS.  Empty
    where it was not full, but one request too large."""
    host = next((host for host in context.hosts if host.end is not None and host.end.holders), None)
    if host is None or host.end is None or host.end.asks_too_much:
        return ()
    whole = sum(each.nbytes for each in host.end.holders)
    return tuple(
        {
            "kind": _PURPOSES.get(each.kind, each.kind), "holder": each.name, "place": each.place,
            "held_bytes": each.nbytes, "percent": percent(each.nbytes, whole), "count": each.count,
            "bytes_per_step": each.per_step, "host": host.host,
        }
        for each in host.end.holders
    )  # fmt: skip


def too_large_request(context: Context) -> RefusedRequest | None:
    """The request at which the program ended, as no memory could hold it; None if it ended otherwise."""
    ends = [host.end for host in context.hosts if host.end is not None]
    return next((end.asks_too_much for end in ends if end.asks_too_much), None)


def _judge_crash(headline: str, details: Sequence[str], end: EndFacts) -> Verdict:
    """Where memory ran out, and how much was asked for; the sentence as it was recorded where that is not known."""
    if refused := _REFUSED.fullmatch(headline):
        size, free = (size_text(int(refused[name].replace(",", ""))) for name in ("size", "free"))
        where = f" in {_describe_frame(refused['frame'])}" if refused["frame"] else ""
        told = f"GPU {refused['device']} was asked for {size} and had {free} left"
        return _judge(f"ran out of memory{where}", told, details)
    found = CRASH.fullmatch(headline)
    if found is None:
        label, _, said = headline.partition(": ")  # as it was recorded
        return _judge(label, said, details)
    where = f" in {found['place']}" if found["place"] else found["op"] or ""
    later = ["the capture had ended before"] if found["later"] else []
    request = end.asks_too_much
    left_out = ((_HELD,) if end.holders else ()) + (("in use: ", "free: ") if request else ())
    kept = [each for each in details if not each.startswith(left_out)]
    asked = size_text(request.nbytes) if request else found["size"]
    left = f" at once, and {size_text(request.free or 0)} were free" if request else ""
    return _judge(f"ran out of memory{where}", f"it asked for {asked}{left}", [*kept, *later])


def _name_missed(hang: Hang) -> str:
    return "{operation} #{number}".format(**hang.rows[0])


def _judge(label: str, said: str, evidence: Sequence[str]) -> Verdict:
    return Verdict("unknown", None, label, said, None, tuple(evidence))


def _describe_frame(frame: Cell) -> str:
    """`train (/srv/train.py:15)` of `/srv/train.py(15): train`, as other places are written."""
    name, file, line = place_of(str(frame))
    return name if file is None else f"{name} ({file}:{line})"


def _answer_snapshot(holders: Sequence[Holder]) -> tuple[Advice, Verdict]:
    whole = sum(each.nbytes for each in holders)
    advice = Advice(
        id=f"{OF_JOB}snapshot", kind="none", title="See what fills the memory",
        evidence=_describe_holder(holders[0], whole), predicted_speedup=None,
        actions=(_SMALLER, "to see where the time goes, record a profile of some steps as well"),
        tool="memory-profile", confidence=0.9, reasoning="a snapshot of memory holds no steps",
    )  # fmt: skip
    return advice, _judge("memory only", f"{size_text(whole)} in use at the peak, and no step was recorded", ())


def _advise_hang(hang: Hang) -> Advice:
    first = hang.rows[0]
    evidence = "; ".join(hang.sentences)
    if first["at"]:
        evidence = evidence.replace(f"at {first['at']}", f"in {_describe_frame(first['at'])}")
    at = (
        f"rank {first['rank']} was last seen in {_describe_frame(first['at'])}"
        if first["at"]
        else f"see where rank {first['rank']} is"
    )
    waits = f"; the others wait in {_describe_frame(first['others_at'])}" if first["others_at"] else ""
    return Advice(
        id=f"{OF_JOB}hang", kind="none",
        title=f"Find out why rank {first['rank']} did not come to {_name_missed(hang)}",
        evidence=evidence, predicted_speedup=None, actions=(at + waits, *_HANG_ACTIONS),
        tool="distributed", confidence=0.9, reasoning="a job that stands still has no step that could be shorter",
    )  # fmt: skip


def _advise_failed(failed: str) -> Advice:
    what, _, said = failed.partition(": ")
    return Advice(
        id=f"{OF_JOB}failed", kind="none", title=f"Let the program run: it ended with {what} before a step",
        evidence=f"nothing was trained: {said or what}", predicted_speedup=None,
        actions=("correct what its traceback names, then record again",),
        tool="op-stats", confidence=0.9, reasoning="the program ended before it had a step that could be shorter",
    )  # fmt: skip


def _advise_crash(crash: str, holders: Sequence[Holder]) -> Advice:
    first, kept = holders[0] if holders else None, kept_first(holders)
    title = f"Keep less in {kept.name} ({kept.place})" if kept else "Make the program fit into memory"
    return Advice(
        id=f"{OF_JOB}out-of-memory", kind="memory_churn", title=title,
        evidence=_describe_holder(first, sum(each.nbytes for each in holders)) if first else crash,
        predicted_speedup=None, actions=_memory_actions(kept),
        tool="memory-profile", confidence=0.9, reasoning="the program ended before it could be faster",
    )  # fmt: skip


def _advise_less(request: RefusedRequest, holders: Sequence[Holder]) -> Advice:
    size, place = size_text(request.nbytes), f"{request.place} asks" if request.place else "one request asks"
    held = f"; {_describe_holder(holders[0], sum(each.nbytes for each in holders))}" if holders else ""
    return Advice(
        id=f"{OF_JOB}too-large-request", kind="memory_churn", title=f"Compute in pieces: {place} for {size} at once",
        evidence=f"no memory that the program frees makes room for it: it uses {size_text(request.used or 0)}{held}",
        predicted_speedup=None, actions=_IN_PIECES,
        tool="memory-profile", confidence=0.9, reasoning="the program ended before it could be faster",
    )  # fmt: skip


def _memory_actions(kept: Holder | None) -> tuple[str, ...]:
    if kept is None:
        return (_SMALLER,)
    return (_DETACH, _KEEP_FEWER) if _WITH_GRAPH in kept.kind else (_KEEP_FEWER,)


def advise_on_growth(context: Context) -> Advice | None:
    """What keeps more memory with each step, before that runs out; None where nothing is known to, or where it has run
    out, of which the advice says as much."""
    if any(host.end is not None and host.end.crash for host in context.hosts):
        return None
    found = next((host.growth for host in context.hosts if host.growth is not None), None)
    if found is None:
        return None
    grows = f"memory grows by {size_text(round(found.per_step))} a step"
    of = f"{found.op}{f' ({found.place})' if found.place else ''}" if found.op else ""
    return Advice(
        id="memory.growth", kind="none", title=f"Keep less in {of}: {grows}" if of else f"Find what stays: {grows}",
        evidence=f"{found.region} of all {found.steps} steps were still there at the end of the capture,"
        f" {size_text(found.allocated)} together: a leak, if unintended",
        predicted_speedup=None,
        actions=(_DETACH, _KEEP_FEWER) if _WITH_GRAPH in (found.region or "") else (_KEEP_FEWER,),
        tool="memory-profile", confidence=0.9, reasoning="what stays of each step fills the memory one day",
    )  # fmt: skip


def _describe_holder(first: Holder, whole: int) -> str:
    """`history` (oom.py:13) holds 992 MiB of the 1 GiB that was counted; each step adds 16 MiB."""
    kind = first.kind.replace("_", " ")
    of = f"{size_text(first.nbytes)} of the {size_text(whole)} that was counted"
    where = f" ({first.place})" if first.place else ""
    said = f"`{first.name}`{where} holds {of}: {kind}" if first.name else f"{kind}{where} take {of}"
    return said + (f"; each step adds {size_text(round(first.per_step))}" if first.per_step else "")
