"""Work that CUDA graphs replay, as PyTorch annotates it when it exports: each kernel as if it had run by itself.

    export_chrome_trace(path, cuda_graph_annotations=get_kernel_annotations(), graph_lanes="all")

writes the annotations of a graph's node to its kernels, all as text, and may draw them on another stream than the one
they ran on.  Here they go back to that stream, and numbers are numbers again, so that nobody after the reader has to
know how a trace was exported.
"""

from __future__ import annotations

import re

import numpy as np

from stepscope.formats.kineto.document import Raw
from stepscope.model import StatTag
from stepscope.model.arrays import I64, distinct, run_rows
from stepscope.model.stat_names import COLLECTIVE_IN, COLLECTIVE_OUT, GRAPH_NODE_ID, GROUP_SIZE, RANK

_RAN_ON, _DRAWN_ON, _STREAM = "original_stream", "annotated_stream", "stream"
_NUMBERS = (*COLLECTIVE_IN, *COLLECTIVE_OUT, *GROUP_SIZE, *RANK, "Rank", "Seq", "Src Rank", "Dst Rank")
_NUMBER = re.compile(rb"-?\d{1,18}")


def normalize_annotations(raw: Raw) -> None:
    """Puts replayed work back on the stream it ran on, and reads the numbers among its annotations, in place."""
    known = len(raw.texts)
    names = {name: raw.texts.add(name) for name in (_RAN_ON, _STREAM, *_NUMBERS, GRAPH_NODE_ID[0])}
    if names[_RAN_ON] < known:
        _restore_streams(raw, names[_RAN_ON], names[_STREAM])
    if names[GRAPH_NODE_ID[0]] < known:
        _read_numbers(raw, names[GRAPH_NODE_ID[0]], [names[name] for name in _NUMBERS])


def _restore_streams(raw: Raw, ran_on: int, stream: int) -> None:
    """The stat of the stream names the one that the work ran on again, and another stat the one it was drawn on."""
    moved = np.flatnonzero((raw.stat_name == ran_on) & (raw.stat_tag == StatTag.INT))
    rows = _owners(raw, moved)
    numbers, place = np.unique(raw.stat_value[moved], return_inverse=True)
    texts = np.array([raw.texts.add(str(number)) for number in numbers.tolist()], np.int32)
    raw.tid[rows] = texts[place]
    stats = _stats_of(raw, rows)
    raw.stat_name[stats[raw.stat_name[stats] == stream]] = raw.texts.add(_DRAWN_ON)
    raw.stat_name[moved] = stream


def _read_numbers(raw: Raw, node: int, names: list[int]) -> None:
    """Eager collectives have these as numbers; annotations of graphs have them as text."""
    stats = _stats_of(raw, _owners(raw, np.flatnonzero(raw.stat_name == node)))
    stats = stats[(raw.stat_tag[stats] == StatTag.STRING) & np.isin(raw.stat_name[stats], names)]
    for text in distinct(raw.stat_value[stats]).tolist():
        found = _NUMBER.fullmatch(raw.texts.raw(text))
        if found:
            same = stats[raw.stat_value[stats] == text]
            raw.stat_tag[same], raw.stat_value[same] = StatTag.INT, int(found[0])


def _owners(raw: Raw, stats: I64) -> I64:
    """The rows of the events that have some stats."""
    return np.searchsorted(raw.stat_offsets, stats, side="right") - 1


def _stats_of(raw: Raw, rows: I64) -> I64:
    """The rows of all stats of some events."""
    return run_rows(raw.stat_offsets[rows], raw.stat_offsets[rows + 1] - raw.stat_offsets[rows])
