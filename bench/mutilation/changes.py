"""What befalls recordings: each change takes a recording and gives a poorer one, or None where it changes nothing.

None of them changes what the job did, so the right answer stays; where the change also changes how long a step lasts,
it says by how much.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from bench.mutilation.rows import (
    CALL,
    DEVICE,
    DEVICE_SPAN,
    HOST_ROWS,
    LINK,
    MARK,
    OP,
    OTHER,
    PS_PER_NS,
    PS_PER_US,
    PYTHON,
    STREAM_WAIT,
    WAIT,
    Recording,
    Row,
    is_link,
    stat_of,
)  # fmt: skip

PS_PER_MS = 1_000_000_000


@dataclass(frozen=True)
class Change:
    """A change.

    Attributes:
        apply: the changed recording.
        title: what it is, in words.
        longer: a step of the result lasts between this many times as long as before.
    """

    apply: Callable[[Recording, random.Random], Recording | None]
    title: str
    longer: tuple[float, float] = (1.0, 1.0)


def _without(*words: str) -> Callable[[Recording, random.Random], Recording | None]:
    def apply(recording: Recording, _: random.Random) -> Recording | None:
        kept = [row for row in recording.rows if row.what not in words]
        recording.rows, before = kept, len(recording.rows)
        return recording if len(kept) < before else None

    return apply


def _only(*words: str) -> Callable[[Recording, random.Random], Recording | None]:
    def apply(recording: Recording, _: random.Random) -> Recording | None:
        recording.rows = [row for row in recording.rows if row.what in words]
        return recording if recording.rows else None

    return apply


def _without_links(recording: Recording, _: random.Random) -> Recording | None:
    recording.rows = [row for row in recording.rows if row.what != LINK]
    linked = 0
    for row in recording.rows:
        kept = {key: value for key, value in row.stats.items() if not is_link(key)}
        linked += len(kept) < len(row.stats)
        row.stats = kept
    return recording if linked else None


def _device_ends_early(recording: Recording, _: random.Random) -> Recording | None:
    marks = sorted(row.end for row in recording.rows if row.what == MARK)
    device = _device(recording)
    if len(marks) < 4 or not device:
        return None
    end = marks[1]
    recording.rows = [row for row in recording.rows if row.what not in (DEVICE, DEVICE_SPAN) or row.start < end]
    return recording


def _stray(recording: Recording, rng: random.Random) -> Recording | None:
    device = _device(recording)
    if not device:
        return None
    one = rng.choice(device)
    later = replace(one, start=max(row.end for row in device) + 60_000 * PS_PER_MS, stats=dict(one.stats))
    later.stats = {key: value for key, value in later.stats.items() if not is_link(key)}
    recording.rows.append(later)
    return recording


def _overlong(recording: Recording, rng: random.Random) -> Recording | None:
    device = _device(recording)
    if len(device) < 10:
        return None
    one = rng.choice(device[len(device) // 4 : -len(device) // 4])
    one.duration = (one.duration or 0) + (PS_PER_NS << 32)  # a counter of 32 bits in ns ran over
    return recording


def _polling(recording: Recording, _: random.Random) -> Recording | None:
    host = [row for row in recording.rows if row.what in HOST_ROWS]
    if not host:
        return None
    first, last = min(row.start for row in host), max(row.end for row in host)
    if recording.form == "kineto":
        process = next(row.place for row in host)
        has_python = any(row.what == PYTHON for row in host)
        category, name = ("python_function", "queue.py(154): get") if has_python else ("cuda_runtime", "cudaEventQuery")
        line, raw = 4999, {"ph": "X", "cat": category}
        what, place = PYTHON if has_python else CALL, process
    else:
        index = next(row.line[0] for row in host)
        plane = recording.head["planes"][index]
        plane.lines.append(([(1, 0, 4999, b""), (2, 2, 0, b"poller")], first // PS_PER_NS, "poller"))
        line, raw, name = (index, len(plane.lines) - 1), ([], []), "$queue.py:154 get"
        what, place = PYTHON, host[0].place
    every = max((last - first) // 2000, PS_PER_MS)
    for at in range(first, last, every):
        recording.rows.append(Row(what, place, line, name, at, every - 20 * PS_PER_US, {}, raw))
    return recording


def _noise(recording: Recording, rng: random.Random) -> Recording | None:
    device = _device(recording)
    for row in device:
        row.start += rng.randint(-5, 5) * PS_PER_NS
    return recording if device else None


def _unknown_categories(recording: Recording, _: random.Random) -> Recording | None:
    if recording.form == "kineto":
        for row in _device(recording):
            row.raw = {**row.raw, "cat": "accelerator_task"}
    else:
        for plane in recording.head["planes"]:
            plane.name = plane.name.replace("/device:GPU", "/device:ACME").replace("/device:TPU", "/device:ACME")
    return recording if _device(recording) else None


def _unknown_process(recording: Recording, _: random.Random) -> Recording | None:
    device = _device(recording)
    if not device or recording.form != "kineto":
        return None
    recording.head["names"] = [one for one in recording.head["names"] if one.get("pid") != device[0].place]
    for place, text in ((9001, "Acme Hardware"),):
        recording.head["names"].append({"ph": "M", "name": "process_name", "pid": place, "tid": 0, "ts": 0,
                                        "args": {"name": text}})  # fmt: skip
    for row in device:
        row.place, row.raw = 9001, {key: value for key, value in row.raw.items() if key != "cat"}
        row.stats = {key: value for key, value in row.stats.items() if key in ("correlation", "External id")}
    return recording


def _two_ranks(recording: Recording, rng: random.Random) -> Recording | None:
    if recording.form != "kineto":
        return None
    twins, shift = [], rng.randint(-40, 40) * PS_PER_US
    for row in recording.rows:
        twin = replace(row, start=row.start + shift, stats=dict(row.stats), place=_other_place(row.place))
        for key, value in row.stats.items():
            if is_link(key) and isinstance(value, int):
                twin.stats[key] = value + 50_000_000
            elif key == "device":
                twin.stats[key] = 1
        if "id" in twin.raw and isinstance(twin.raw["id"], int):
            twin.raw = {**twin.raw, "id": twin.raw["id"] + 50_000_000}
        twins.append(twin)
    recording.rows += twins
    recording.head["names"] += [
        {**one, "pid": _other_place(one.get("pid")), "args": _other_label(one["args"])}
        for one in recording.head["names"]
    ]
    return recording


def _other_place(place: object) -> object:
    return 1 if place == 0 else place + 1000 if isinstance(place, int) else place


def _other_label(args: dict[str, object]) -> dict[str, object]:
    return {key: "GPU 1" if value == "GPU 0" else value for key, value in args.items()}


def _five_times(recording: Recording, _: random.Random) -> Recording | None:
    first = min(row.start for row in recording.rows)
    for row in recording.rows:
        row.start = first + 5 * (row.start - first)
        row.duration = None if row.duration is None else 5 * row.duration
    _stated_end(recording, 5)
    return recording


def _stated_end(recording: Recording, times: int) -> None:
    """The start and stop that a file states move with its rows."""
    if recording.form != "xspace":
        return
    from bench import wire

    for plane in recording.head["planes"]:
        if plane.name != "Task Environment":
            continue
        stop = next((key for key, name in plane.stat_names.items() if name == "profile_stop_time"), None)
        start = next((key for key, name in plane.stat_names.items() if name == "profile_start_time"), None)
        values = {found[0][2]: found[1][2] for one in plane.fields if one[0] == 6
                  for found in [list(wire.fields(one[3]))] if len(found) == 2}  # fmt: skip
        if stop in values and start in values:
            moved = wire.number(1, stop) + wire.number(3, values[start] + times * (values[stop] - values[start]))
            plane.fields = [
                (6, wire.LENGTH, 0, moved) if one[0] == 6 and next(iter(wire.fields(one[3])))[2] == stop else one
                for one in plane.fields
            ]


def _under_load(recording: Recording, rng: random.Random) -> Recording | None:
    """Others take the processor for a moment in each step: the host lasts longer then, and all later comes later."""
    marks = sorted((row.start, row.end) for row in recording.rows if row.what == MARK)
    if len(marks) < 3:
        return None
    length = (marks[-1][1] - marks[0][0]) // len(marks)
    pauses = sorted(rng.randint(start, max(end - 1, start)) for start, end in marks)
    pause = length // 12

    def moved(time: int) -> int:
        return time + pause * sum(time > at for at in pauses)

    for row in recording.rows:
        end, start = row.end, row.start
        row.start = moved(start)
        if row.duration is not None and row.what not in (DEVICE, DEVICE_SPAN):
            row.duration = moved(end) - row.start
    _stated_end(recording, 2)
    return recording


def _nameless(recording: Recording, _: random.Random) -> Recording | None:
    for row in recording.rows:
        if row.what not in (MARK, LINK, OTHER):
            row.name = "unknown"  # what libkineto writes for a name that it cannot print
    return recording


def _shifted(recording: Recording, _: random.Random) -> Recording | None:
    """As if the machine's clock stood at another day."""
    for row in recording.rows:
        row.start += 86_400_000 * PS_PER_MS
    if recording.form == "xspace":
        for plane in recording.head["planes"]:
            plane.lines = [(fields, start + 86_400_000_000_000, name) for fields, start, name in plane.lines]
        recording.head["planes"] = [plane for plane in recording.head["planes"] if plane.name != "Task Environment"]
        recording.rows = [row for row in recording.rows if row.line[0] < len(recording.head["planes"])]
    return recording


def _device_clock(us: int) -> Callable[[Recording, random.Random], Recording | None]:
    def apply(recording: Recording, _: random.Random) -> Recording | None:
        device = [row for row in recording.rows if row.what in (DEVICE, DEVICE_SPAN)]
        for row in device:
            row.start += us * PS_PER_US
        return recording if device else None

    return apply


def _equal_times(recording: Recording, _: random.Random) -> Recording | None:
    first = min(row.start for row in recording.rows)
    for row in recording.rows:
        row.start, row.duration = first, None if row.duration is None else 0
    return recording


def _text_links(recording: Recording, _: random.Random) -> Recording | None:
    linked = 0
    for row in recording.rows:
        for key, value in row.stats.items():
            if key in ("correlation", "External id") and isinstance(value, int):
                row.stats[key], linked = str(value), linked + 1
            elif key == "correlation_id":
                row.stats[key], linked = stat_of(str(value[1])), linked + 1
    return recording if linked else None


def _lost_half(words: Collection[str]) -> Callable[[Recording, random.Random], Recording | None]:
    """A buffer was too small: of these rows every other one is lost."""

    def apply(recording: Recording, rng: random.Random) -> Recording | None:
        kept = [row for row in recording.rows if row.what not in words or rng.random() < 0.5]
        recording.rows, before = kept, len(recording.rows)
        return recording if len(kept) < before else None

    return apply


def _device(recording: Recording) -> list[Row]:
    return sorted((row for row in recording.rows if row.what == DEVICE), key=lambda row: row.start)


CHANGES = {
    "as-recorded": Change(lambda recording, _: recording, "as it was recorded"),
    "no-python": Change(_without(PYTHON), "without the Python tracer"),
    "no-host-ops": Change(_without(OP), "without host ops"),
    "no-host-tracer": Change(_without(OP, MARK, CALL, WAIT, STREAM_WAIT), "without ops, marks and calls of the host"),
    "no-waits": Change(_without(WAIT), "without waits"),
    "no-stream-waits": Change(_without(STREAM_WAIT), "without stream waits"),
    "no-calls": Change(_without(CALL, WAIT, STREAM_WAIT), "without calls of the runtime"),
    "no-links": Change(_without_links, "without flow ids and correlations"),
    "text-links": Change(_text_links, "with ids as text"),
    "no-marks": Change(_without(MARK), "without step marks"),
    "no-device": Change(_without(DEVICE, DEVICE_SPAN), "without the device"),
    "device-ends": Change(_device_ends_early, "with device events for two steps only"),
    "device-half": Change(_lost_half((DEVICE,)), "with half of the device events lost"),
    "stray": Change(_stray, "with one device event 60 s later"),
    "overlong": Change(_overlong, "with one device event 4.3 s too long"),
    "polling": Change(_polling, "with a thread that polls"),
    "noise": Change(_noise, "with 5 ns of noise"),
    "unknown-categories": Change(_unknown_categories, "with device events of an unknown category"),
    "unknown-process": Change(_unknown_process, "with device events in an unknown process"),
    "two-ranks": Change(_two_ranks, "with two ranks in one file"),
    "five-times": Change(_five_times, "with steps five times as long", (5.0, 5.0)),
    "load": Change(_under_load, "under load", (1.0, 1.2)),
    "nameless": Change(_nameless, "with all names stripped"),
    "shifted": Change(_shifted, "with all times shifted by a day"),
    "device-early": Change(_device_clock(-200), "with the device's clock 200 us early"),
    "device-late": Change(_device_clock(200), "with the device's clock 200 us late"),
    "only-device": Change(_only(DEVICE), "with device events only"),
    "only-python": Change(_only(PYTHON), "with Python calls only"),
    "only-ops": Change(_only(OP), "with host ops only"),
    "only-marks": Change(_only(MARK), "with step marks only"),
    "equal-times": Change(_equal_times, "with all times equal"),
}  # fmt: skip
