"""Ranges of the program in files of an exporter that writes them like ops, with the same category or none.

    thread  |predict-----------------------|     no op is called so: it names no library, as `aten::` does, states
             |aten::linear---|aten::relu|         neither operands nor a place in the backward pass, and holds ops

Such a row tells what its part of the program is for, and computes nothing beside the ops in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from stepscope.formats.kineto.document import Raw
from stepscope.formats.kineto.events import is_phase
from stepscope.model.arrays import I64, Mask, distinct

_OPERATOR = "operator"  # the category of ops and ranges alike, in lower case
_RANGE = "user_annotation"
_OF_LIBRARY = re.compile(r".*::")
_OF_AUTOGRAD = re.compile(r"\w*(?:Backward|Grad)\w*$")
# What only ops state: their operands, and their place in the backward pass.
_STATED_BY_OPS = ("Sequence number", "Fwd thread id", "Input Dims", "Input dims", "Input type")


def tell_ranges(raw: Raw, of_ops: Sequence[int]) -> None:
    """Gives the rows of the program's ranges the category that later exporters give them, in place; none where the file
    tells them apart itself.

    Args:
        of_ops: processes of which all rows are written like ops, by their text ids.
    """
    cats = distinct(raw.cat).tolist()
    operators = [cat for cat in cats if raw.texts[cat].lower() == _OPERATOR]
    if not (operators or of_ops) or any(raw.texts[cat] == _RANGE for cat in cats):
        return
    alike = np.isin(raw.cat, operators) | np.isin(raw.pid, list(of_ops))
    rows = np.flatnonzero(alike & is_phase(raw, "X"))
    names = distinct(raw.name[rows]).tolist()
    ops = [name for name in names if _OF_LIBRARY.match(raw.texts[name])]
    named = [name for name in names if name not in set(ops) and not _OF_AUTOGRAD.match(raw.texts[name])]
    candidates = rows[np.isin(raw.name[rows], named)]
    if not len(candidates) or not ops:
        return
    held = _holds_any(raw, candidates, rows[np.isin(raw.name[rows], ops)])
    no_range = distinct(raw.name[candidates[~held | _states_operands(raw, candidates)]])
    ranges = candidates[~np.isin(raw.name[candidates], no_range)]
    raw.cat[ranges] = raw.texts.add(_RANGE)
    if of_ops:  # PyTorch until 1.7 repeats them on the device
        repeated = (raw.cat == raw.texts.add("kernel")) & np.isin(raw.name, distinct(raw.name[ranges]))
        raw.cat[repeated] = raw.texts.add("gpu_user_annotation")


def _holds_any(raw: Raw, outer: I64, inner: I64) -> Mask:
    """Whether each of some rows holds one of some others of its thread: bool of shape (outer,)."""
    thread = np.unique(np.stack([raw.pid, raw.tid]), axis=1, return_inverse=True)[1].reshape(-1)
    found = np.zeros(len(outer), np.bool_)
    for each in distinct(thread[outer]).tolist():
        here = np.flatnonzero(thread[outer] == each)
        mine = inner[thread[inner] == each]
        begins, longest = np.sort(raw.us[mine]), raw.duration_us[outer[here]]
        start = raw.us[outer[here]]
        found[here] = np.searchsorted(begins, start + longest, side="right") > np.searchsorted(begins, start)
    return found


def _states_operands(raw: Raw, rows: I64) -> Mask:
    """Whether each of some rows states what only an op does: bool of shape (rows,)."""
    keys = [raw.texts.add(key) for key in _STATED_BY_OPS]
    stated = np.append(0, np.cumsum(np.isin(raw.stat_name, keys)))
    found: Mask = stated[raw.stat_offsets[rows + 1]] > stated[raw.stat_offsets[rows]]
    return found
