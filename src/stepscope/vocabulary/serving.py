"""Serving: the names that model servers give to the work on a batch or a request."""

from __future__ import annotations

import re
from typing import NamedTuple

from stepscope.vocabulary.patterns import Pattern


class Batch(NamedTuple):
    """What the name of serving work says; unknown is None.

    Attributes:
        kind: what the server calls it.
        requests, tokens: all that it works on.
        prefill, decode: the requests whose prompt it reads, and those that it continues by a token.
    """

    kind: str
    requests: int | None = None
    tokens: int | None = None
    prefill: int | None = None
    decode: int | None = None


# SGLang: `step[EXTEND bs=15 toks=15360]`; of a mixed batch with details, `c` requests are read and `g` continued.
_SGLANG = Pattern(r"step\[(?P<kind>\w+) bs=(?P<requests>\d{1,9})(?: toks=(?P<tokens>\d{1,9}))?[^\]]*\]")
# vLLM: `execute_context_15(15360)_generation_3(3)`, requests and tokens in prefill and in decode; with details
# `execute_15360_context_15(...)_generation_0(...)`, the tokens first.
_VLLM = Pattern(
    r"execute_(?:(?P<tokens>\d{1,9})_)?context_(?P<read>\d{1,9})\((?P<read_tokens>[^)]*)\)"
    r"_generation_(?P<continued>\d{1,9})(?:\((?P<continued_tokens>[^)]*)\))?.*"
)
# ATOM: `prefill[bs=2 tok=14721 ctx=[7803, 6918]]`, `decode[bs=117/128 tok=117 d=117]`: 117 of 128 places are used.
_ATOM = Pattern(r"(?P<kind>prefill|decode)\[bs=(?P<requests>\d{1,9})(?:/\d+)? tok=(?P<tokens>\d{1,9})\b.*\]")
_SPLIT = Pattern(r" c=(?P<read>\d{1,9}) g=(?P<continued>\d{1,9})\b")
_MOST_DIGITS = 10
_SERVER = Pattern(
    r"(?P<kind>SessionRun|TfrtModelRun|ServingModelRun|BatchingSessionRun|ModelServerRequest_\w+|ProcessBatch)\b.*"
)


def batch_of(name: str) -> Batch | None:
    """The batch that an event works on, if it has a name that model servers give; otherwise None.

    >>> batch_of("step[DECODE bs=8]")
    Batch(kind='DECODE', requests=8, tokens=None, prefill=0, decode=8)
    """
    served = served_batch(name)
    if served is not None:
        return served
    found = _SERVER.fullmatch(name)
    return Batch(found["kind"]) if found else None


def served_batch(name: str) -> Batch | None:
    """The batch of a language model's server, which handles one after the other: each is a step of it.

    >>> served_batch("execute_context_2(6144)_generation_3(3)")
    Batch(kind='mixed', requests=5, tokens=6147, prefill=2, decode=3)
    >>> served_batch("step[EXTEND bs=15 toks=15360]"), served_batch("SessionRun")
    (Batch(kind='EXTEND', requests=15, tokens=15360, prefill=15, decode=0), None)
    """
    if found := _SGLANG.fullmatch(name):
        return _batch_of_sglang(found, name)
    if found := _VLLM.fullmatch(name):
        read, continued = int(found["read"]), int(found["continued"])
        kind = "mixed" if read and continued else "context" if read else "generation"
        parts = (found["tokens"],) if found["tokens"] else (found["read_tokens"], found["continued_tokens"] or "")
        tokens = sum(map(int, parts)) if all(part.isdecimal() and len(part) < _MOST_DIGITS for part in parts) else None
        return Batch(kind, read + continued, tokens, read, continued)
    if found := _ATOM.fullmatch(name):
        count, is_read = int(found["requests"]), found["kind"] == "prefill"
        return Batch(found["kind"], count, int(found["tokens"]), count if is_read else 0, 0 if is_read else count)
    return None


def _batch_of_sglang(found: re.Match[str], name: str) -> Batch:
    kind, requests = found["kind"], int(found["requests"])
    tokens = int(found["tokens"]) if found["tokens"] else None
    if kind in ("EXTEND", "DECODE"):
        is_read = kind == "EXTEND"
        return Batch(kind, requests, tokens, requests if is_read else 0, 0 if is_read else requests)
    split = _SPLIT.search(name)
    return Batch(kind, requests, tokens, *((int(split["read"]), int(split["continued"])) if split else ()))
