"""Protobuf wire decoding of XSpace messages into columns.

Everything works on byte ranges of one buffer and never looks past the end of its range, so damaged input can at worst
give wrong numbers inside the damaged message, never a read out of bounds.  Framing is checked level by level: a bad
event is skipped by its length, a bad line ends that line, a bad plane ends that plane.

    space  = { plane }            scan_fields
    plane  = { line | metadata }  scan_fields, walk_metadata
    line   = { event }            walk_lines, once to count and once to fill
    event  = { stat }

Small helpers are inlined and the hot loop is written out: a call that passes arrays counts references to each of them,
which costs more than the decoding.
"""

from __future__ import annotations

from stepscope.kernels.wire.fields import (
    BAD_TAG,
    BAD_VARINT,
    FIELD_MESSAGE,
    FIELD_NUMBER,
    FIELD_PLACE,
    FIELD_START,
    FIELD_STOP,
    FIELD_WIDTH,
    OVERRUN,
    scan_fields,
)
from stepscope.kernels.wire.lines import (
    BAD_TIMES,
    BROKEN_AT,
    BROKEN_CODE,
    COLLECT_IDS,
    DECODE,
    DISPLAY_ID,
    DISPLAY_NAME,
    DURATION_PS,
    EVENTS,
    HEADER_WIDTH,
    LINE_ID,
    LINE_NAME,
    LOST_EVENTS,
    LOST_STATS,
    MEASURE,
    START_NS,
    STATS,
    STOP_AT,
    STOP_CODE,
    UNNAMED,
    UNSORTED,
    walk_lines,
)
from stepscope.kernels.wire.metadata import (
    META_BAD_AT,
    META_BAD_CODE,
    META_DISPLAY,
    META_ID,
    META_NAME,
    META_STATS,
    META_WIDTH,
    walk_metadata,
)
from stepscope.kernels.wire.stats import FLAG_AGGREGATE, FLAG_IF_NONZERO, INLINE, NAME_OCCURRENCES, decode_stats
from stepscope.kernels.wire.texts import TEXT_LENGTH, TEXT_START, TEXT_WIDTH, gather_bytes, intern, rehash

__all__ = [
    "BAD_TAG",
    "BAD_TIMES",
    "BAD_VARINT",
    "BROKEN_AT",
    "BROKEN_CODE",
    "COLLECT_IDS",
    "DECODE",
    "DISPLAY_ID",
    "DISPLAY_NAME",
    "DURATION_PS",
    "EVENTS",
    "FIELD_MESSAGE",
    "FIELD_NUMBER",
    "FIELD_PLACE",
    "FIELD_START",
    "FIELD_STOP",
    "FIELD_WIDTH",
    "FLAG_AGGREGATE",
    "FLAG_IF_NONZERO",
    "HEADER_WIDTH",
    "INLINE",
    "LINE_ID",
    "LINE_NAME",
    "LOST_EVENTS",
    "LOST_STATS",
    "MEASURE",
    "META_BAD_AT",
    "META_BAD_CODE",
    "META_DISPLAY",
    "META_ID",
    "META_NAME",
    "META_STATS",
    "META_WIDTH",
    "NAME_OCCURRENCES",
    "OVERRUN",
    "START_NS",
    "STATS",
    "STOP_AT",
    "STOP_CODE",
    "TEXT_LENGTH",
    "TEXT_START",
    "TEXT_WIDTH",
    "UNNAMED",
    "UNSORTED",
    "decode_stats",
    "gather_bytes",
    "intern",
    "rehash",
    "scan_fields",
    "walk_lines",
    "walk_metadata",
]
