"""Serving: the names that model servers give to the work on a batch or a request."""

from __future__ import annotations

from typing import NamedTuple

from stepscope.vocabulary.patterns import Pattern


class Batch(NamedTuple):
    """What the name of serving work says; unknown is None."""

    kind: str
    requests: int | None = None
    tokens: int | None = None


# SGLang: `step[EXTEND bs=15 toks=15360]`.
_SGLANG = Pattern(r"step\[(?P<kind>\w+) bs=(?P<requests>\d{1,9})(?: toks=(?P<tokens>\d{1,9}))?[^\]]*\]")
# vLLM: `execute_15360_context_15(...)_generation_0(...)`: tokens, requests in prefill, requests in decode.
_VLLM = Pattern(r"execute_(?P<tokens>\d{1,9})_context_(?P<read>\d{1,9})\([^)]*\)_generation_(?P<continued>\d{1,9})\b.*")
_SERVER = Pattern(
    r"(?P<kind>SessionRun|TfrtModelRun|ServingModelRun|BatchingSessionRun|ModelServerRequest_\w+|ProcessBatch)\b.*"
)


def batch_of(name: str) -> Batch | None:
    """The batch that an event works on, if it has a name that model servers give; otherwise None.

    >>> batch_of("step[DECODE bs=8]")
    Batch(kind='DECODE', requests=8, tokens=None)
    """
    found = _SGLANG.fullmatch(name)
    if found:
        return Batch(found["kind"], int(found["requests"]), int(found["tokens"]) if found["tokens"] else None)
    found = _VLLM.fullmatch(name)
    if found:
        read, continued = int(found["read"]), int(found["continued"])
        kind = "mixed" if read and continued else "context" if read else "generation"
        return Batch(kind, read + continued, int(found["tokens"]))
    found = _SERVER.fullmatch(name)
    return Batch(found["kind"]) if found else None
