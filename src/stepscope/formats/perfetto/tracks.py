"""Puts rows on the processes, threads and streams that trace JSON would put them on.

What follows, classification included, is then one for both formats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from stepscope.formats.kineto.document import Raw
from stepscope.formats.kineto.lines import Labels
from stepscope.formats.perfetto.packets import PerfettoTrack
from stepscope.kernels.wire import packets as wire
from stepscope.model import StatTag
from stepscope.model.arrays import I64, Mask, distinct

# What PyTorch calls the stages of its work on GPUs, and the categories of its JSON for the same.
_CATEGORY_OF_STAGE = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Annotation": "gpu_user_annotation",
    "EventRecord": "graph_event_node",
    "HostNode": "graph_host_node",
}
_OTHER_STAGE = "kernel"

# Keys that PyTorch gives other names here than in its JSON, since a viewer wants numbers under those.
_JSON_KEYS = {
    "device id": "device",
    "context id": "context",
    "stream id": "stream",
    "registers_per_thread": "registers per thread",
}
_STREAM_KEY, _SYNC_KEY = "stream id", "cuda_sync_kind"
_OVERHEAD = "Overhead"
_LANE = re.compile(r"\[0*(\d+)\] ")  # before the name of a queue, so that queues are sorted
_MOST_ANCESTORS = 32


def place_rows(raw: Raw, tracks: Sequence[PerfettoTrack]) -> Labels:
    """Sets process, thread and category of all rows as in JSON, in place.

    Returns:
        The names of processes and threads.
    """
    keys = _Keys(raw)
    places = _Places(raw, tracks)
    pid, tid, name, kind = (np.array(column, np.int64) for column in places.columns())
    track = raw.tid.astype(np.int64)
    on_queue = kind[track] == wire.QUEUE_TRACK
    _name_categories(raw, on_queue, track, places, keys)
    raw.pid[:] = pid[track]
    raw.tid[:] = tid[track]
    counters = (raw.phase == ord("C")) & (raw.name == 0)
    raw.name[counters] = name[track[counters]]
    _put_back_on_streams(raw, on_queue, keys)
    keys.rename(_JSON_KEYS)
    return Labels(places.process, places.thread)


class _Places:
    """The process and thread of each track, as text ids, and the names of both."""

    def __init__(self, raw: Raw, tracks: Sequence[PerfettoTrack]) -> None:
        self.process: dict[int, str] = {}
        self.thread: dict[tuple[int, int], str] = {}
        self._texts = raw.texts
        self._tracks = tracks
        self._by_uuid = {track.uuid: track for track in tracks if track.kind < wire.QUEUE_TRACK}

    def columns(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Process, thread, name and kind of each track."""
        found = [self._place(track) for track in self._tracks]
        kinds = [track.kind for track in self._tracks]
        names = [track.name for track in self._tracks]
        return [pid for pid, _ in found] or [0], [tid for _, tid in found] or [0], names or [0], kinds or [0]

    def overhead_tracks(self) -> list[int]:
        """The rows of the tracks of a process for the profiler's own work."""
        overhead = {pid for pid, name in self.process.items() if name == _OVERHEAD}
        return [row for row, track in enumerate(self._tracks) if self._place(track)[0] in overhead]

    def _place(self, track: PerfettoTrack) -> tuple[int, int]:
        add, name = self._texts.add, self._texts[track.name]
        if track.kind == wire.QUEUE_TRACK:
            lane = _LANE.match(name)
            return add(str(track.pid)), add(lane[1] if lane else name or "queue")
        if track.kind == wire.GPU_COUNTER_TRACK:
            counters = add(f"GPU {track.pid} Counters")
            return counters, counters
        owner = self._owner(track)
        pid = add(str(owner.pid)) if owner else 0
        if track.kind == wire.THREAD_TRACK:
            tid = add(str(track.tid))
            if name:
                self.thread[pid, tid] = name
            return pid, tid
        if track.kind == wire.PROCESS_TRACK and name:
            self.process[pid] = name
        tid = add(f"track {track.uuid}")
        if name:
            self.thread[pid, tid] = name
        return pid, tid

    def _owner(self, track: PerfettoTrack | None) -> PerfettoTrack | None:
        """The nearest process or thread among a track and its ancestors; None if there is none."""
        for _ in range(_MOST_ANCESTORS):
            if track is None or track.kind in (wire.PROCESS_TRACK, wire.THREAD_TRACK):
                return track
            track = self._by_uuid.get(track.parent) if track.parent else None
        return None


def _name_categories(raw: Raw, on_queue: Mask, track: I64, places: _Places, keys: _Keys) -> None:
    """Gives work on GPUs the category of its stage, and what has none the category that tells it by its place."""
    add = raw.texts.add
    stages = distinct(raw.cat[on_queue]).tolist()
    category = {stage: add(_CATEGORY_OF_STAGE.get(raw.texts[stage], _OTHER_STAGE)) for stage in stages}
    raw.cat[on_queue] = _translate(raw.cat[on_queue].astype(np.int64), category)
    silent = raw.cat == 0
    raw.cat[silent & np.isin(track, places.overhead_tracks())] = add("overhead")
    owners, _ = keys.find(_SYNC_KEY)
    raw.cat[owners[silent[owners]]] = add("cuda_sync")


def _put_back_on_streams(raw: Raw, on_queue: Mask, keys: _Keys) -> None:
    """Puts work that was drawn on another lane on the stream that it ran on."""
    owners, rows = keys.find(_STREAM_KEY)
    known = on_queue[owners] & (raw.stat_tag[rows] == StatTag.INT)
    streams = raw.stat_value[rows[known]]
    text = {stream: raw.texts.add(str(stream)) for stream in distinct(streams).tolist()}
    raw.tid[owners[known]] = _translate(streams, text)


class _Keys:
    """The keys of the stats of a file.  It is made before texts are added that the file does not have."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self._known = len(raw.texts)

    def find(self, name: str) -> tuple[I64, I64]:
        """The owners and the rows of the stats with a name."""
        key = self._raw.texts.add(name)
        if key >= self._known:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        rows = np.flatnonzero(self._raw.stat_name == key)
        return np.searchsorted(self._raw.stat_offsets, rows, side="right") - 1, rows

    def rename(self, names: Mapping[str, str]) -> None:
        """Gives keys other names, in place."""
        for old, new in names.items():
            _, rows = self.find(old)
            self._raw.stat_name[rows] = self._raw.texts.add(new)


def _translate(values: I64, meaning: Mapping[int, int]) -> I64:
    """What each value means."""
    if not meaning:
        return values
    keys = np.array(sorted(meaning), np.int64)
    return np.array([meaning[key] for key in keys.tolist()], np.int64)[np.searchsorted(keys, values)]
