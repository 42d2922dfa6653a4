"""Makes the files of a capture from the trace that PyTorch's profiler writes: the trace compressed, and as XSpace.
Another process runs this; see `stepscope.capture.other_process`."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.model import HostTrace

_FAST = 3  # gzip level: a sixth of the text for a third of the time of the default
_PIECE = 1 << 20


def packed_path(trace: Path) -> Path:
    """Where `pack` puts the compressed trace."""
    return trace.with_name("packed")


def profile_path(trace: Path) -> Path:
    """Where `convert` puts the profile."""
    return trace.with_name("profile")


def operands_path(trace: Path) -> Path:
    """Where it is told which tensors the ops of the trace take, if that is known; see `add_operands`."""
    return trace.with_name("operands.json")


def pack(trace: Path) -> None:
    """Compresses a trace."""
    unfinished = trace.with_name("packing")
    with trace.open("rb") as text, gzip.open(unfinished, "wb", _FAST) as file:
        shutil.copyfileobj(text, file, _PIECE)
    unfinished.replace(packed_path(trace))


def convert(trace: Path, host: str, open_steps: Sequence[str] = ()) -> None:
    """Converts a trace to XSpace.

    Args:
        trace: the trace as PyTorch wrote it.
        host: the host's name.
        open_steps: names of step marks that were still open at the end; the last mark of each name is left out.

    Raises:
        UnreadableError: the trace holds no events.
    """
    from stepscope.formats.kineto.reader import read
    from stepscope.formats.xspace.writer import write

    whole = read(trace.read_bytes(), f"{host}.pt.trace.json", host)
    if operands_path(trace).exists():
        whole = add_operands(whole, json.loads(operands_path(trace).read_bytes()))
    profile_path(trace).write_bytes(write(_drop_last_marks(whole, open_steps)))


def add_operands(trace: HostTrace, known: Mapping[str, Any]) -> HostTrace:
    """The trace with a stat of each op that tells which tensors it takes.

    Args:
        known: `ids`, the numbers of ops, and `operands`, what is told of each: lists of one length.
    """
    import numpy as np

    from stepscope.formats.kineto.links import EXTERNAL_ID
    from stepscope.model import EventKind, stat_names
    from stepscope.model.taking import add_texts

    rows = np.flatnonzero(trace.events.kind == EventKind.OP)
    ids = trace.stat_ints((EXTERNAL_ID,), rows=rows)
    order = np.argsort(ids, kind="stable")
    wanted = np.array(known["ids"], np.int64)
    at = np.searchsorted(ids[order], wanted)
    match = at < len(ids)
    match[match] = ids[order[at[match]]] == wanted[match]
    texts = [text for text, found in zip(known["operands"], match.tolist(), strict=True) if found]
    return add_texts(trace, stat_names.INPUT_TENSORS[0], rows[order[at[match]]], texts)


def _drop_last_marks(trace: HostTrace, names: Sequence[str]) -> HostTrace:
    """The trace without the last mark of each name: on the host, and its copies on devices that start later."""
    import numpy as np

    from stepscope.model.kinds import EventKind
    from stepscope.model.taking import take_events

    events, dropped = trace.events, [np.empty(0, np.int64)]
    for name in set(names):
        named = np.flatnonzero(trace.event_names() == trace.strings.find(name))
        begun_ps = events.start_ps[named[events.kind[named] == EventKind.STEP_MARK]]
        if len(begun_ps):
            dropped.append(named[events.start_ps[named] >= begun_ps.max()])
    kept = np.setdiff1d(np.arange(len(events)), np.concatenate(dropped))
    if len(kept) in (0, len(events)):
        return trace
    return take_events(trace, kept, events.start_ps[kept], events.duration_ps[kept])[0]


def main(arguments: Sequence[str]) -> None:
    """Packs the trace, which matters more, and then converts it."""
    trace, host, open_steps = Path(arguments[0]), arguments[1], arguments[2:]
    pack(trace)
    convert(trace, host, open_steps)
