"""Why a step of a watched job was slow, by the account of the ring; the watch's helper process asks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from stepscope.analysis.compare.one_step import compare_with_median
from stepscope.formats.spool.reader import read


def main(arguments: Sequence[str], ring: bytes) -> None:
    """Writes the reason, for people, and what identifies it.  Another process runs this, see
    `stepscope.capture.other_process`.

    Args:
        arguments: the number of the step, and the path of the result.
        ring: what the watch holds, with its last record.

    Raises:
        UsageError: the ring does not hold the step, or no other one.
    """
    number, result = arguments
    found = compare_with_median(read(ring, "", ""), int(number))
    Path(result).write_text(json.dumps([found.reason, found.cause]))
