"""Ids that join events, as every writer spells them: numbers, text of digits, and numbers beyond a signed 64-bit word.

Whoever comes after sees whole numbers from 1 to 2^63 - 1: ids beyond get numbers from the top of that range.
"""

from __future__ import annotations

import re

import numpy as np

from stepscope.formats.kineto.document import Raw
from stepscope.model import StatTag
from stepscope.model.arrays import I32

_DIGITS = re.compile(rb"\s*([0-9]{1,20})\s*")
_MOST = (1 << 63) - 1


def normalize_ids(raw: Raw, names: I32, keys: tuple[str, ...]) -> None:
    """Makes whole numbers of the stats with these names, in place.

    Args:
        raw: the rows.
        names: the canonical name of each text, as of `canonical_names`.
        keys: canonical names of stats that hold ids.
    """
    is_key = np.isin(names, [raw.texts.add(key) for key in keys])
    if not is_key.any():
        return
    odd = np.flatnonzero(is_key[raw.stat_name] & (raw.stat_tag != StatTag.INT))
    if not len(odd):
        return
    texts, big = (odd[raw.stat_tag[odd] == tag] for tag in (StatTag.STRING, StatTag.UINT))
    spelled, place = np.unique(raw.stat_value[texts], return_inverse=True)
    found = np.array([_number_of(raw.texts.raw(text)) for text in spelled.tolist()], np.uint64)[place]
    known = (found > 0) & (found <= _MOST)
    raw.stat_tag[texts[known]], raw.stat_value[texts[known]] = StatTag.INT, found[known].astype(np.int64)
    beyond = found > _MOST
    rows = np.concatenate([big, texts[beyond]])
    if len(rows):
        _, place = np.unique(np.concatenate([raw.stat_value[big].view(np.uint64), found[beyond]]), return_inverse=True)
        raw.stat_tag[rows], raw.stat_value[rows] = StatTag.INT, _MOST - place


def _number_of(text: bytes) -> int:
    """The number that a text spells; 0 for what is no id."""
    digits = _DIGITS.fullmatch(text)
    return number if digits and (number := int(digits[1])) < 1 << 64 else 0
