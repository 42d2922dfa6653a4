"""The timeline's routes: what an answer holds, how large it may be, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from browsing import DRAWN, store_profile
from draw import draw
from werkzeug.test import Client

from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions
from stepscope.web.timeline import MOST_BYTES


def crowded(lines: int = 12, events: int = 3_000) -> HostTrace:
    """Many threads, each with something in every pixel."""
    builder = TraceBuilder("crowded")
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    for number in range(lines):
        line = builder.line(plane, f"thread {number}")
        for at in range(events):
            line.event(f"e{at % 7}", 1_000 * at, 1_500 if at % 2 else 400, EventKind.OP)
    return builder.build()


class Timeline:
    """One session's routes."""

    def __init__(self, folder: Any, trace: HostTrace) -> None:
        store_profile(folder, "r", trace)
        self.client = Client(App(Site(SiteOptions([Root(str(folder))]))))
        (session,) = self.client.get("/api/sessions").json["sessions"]
        self.root = f"/api/sessions/{session['id']}/timeline"

    def get(self, path: str, **query: object) -> Any:
        return self.client.get(f"{self.root}/{path}", query_string=query)

    def window(self, **query: object) -> tuple[dict[str, Any], dict[str, np.ndarray], int]:
        """Header, columns and size of an answer."""
        answer = self.get("window", **query)
        assert answer.status_code == 200, answer.text
        data = answer.data
        size = int.from_bytes(data[:4], "little")
        head = json.loads(data[4 : 4 + size])
        columns, at = {}, 4 + size
        for name, kind, length in head["columns"]:
            columns[name] = np.frombuffer(data, f"<{kind}", length, at)
            at += columns[name].nbytes
        assert at <= len(data) < at + 8
        return head, columns, len(data)


@pytest.fixture
def drawn(tmp_path) -> Timeline:
    return Timeline(tmp_path, draw(DRAWN))


def test_no_answer_is_larger_than_the_most_and_none_leaves_an_event_out(tmp_path):
    timeline = Timeline(tmp_path, crowded())
    every = ",".join(f"t{line}" for line in range(12))

    _, columns, size = timeline.window(begin=0, end=3_001_000, width=3_000, tracks=f"{every},p0")

    assert size <= MOST_BYTES
    assert columns["count"].sum() == 12 * 3_000
    assert len(set(columns["row_line"].tolist())) == 12


def test_one_answer_holds_windows_that_follow_on_each_other(drawn):
    query = {"width": 64, "tracks": "t0,p0"}
    alone = [drawn.get("window", begin=at * 10**9, end=(at + 4) * 10**9, **query).data for at in (0, 4, 8)]

    together = drawn.get("window", begin=0, end=4 * 10**9, tiles=3, **query).data

    assert together == b"".join(alone)


def test_a_window_tells_the_times_of_its_slices(drawn):
    head, columns, _ = drawn.window(begin=0, end=7 * 10**9, width=700, tracks="t0.0")

    start = head["begin_ps"] + head["unit_ps"] * columns["start"].astype(np.int64)
    assert columns["row_lane"].tolist() == [0]
    assert columns["count"].tolist() == [1]
    assert abs(int(start[0])) <= head["unit_ps"]
    assert columns["busy_ps"].tolist() == [8e9]


def test_groups_and_counters_come_in_cells(drawn):
    head, columns, _ = drawn.window(begin=0, end=32 * 10**9, width=64, tracks="p0")

    assert len(columns["load"]) == head["cells"]
    assert 0 < columns["load"].max() <= 2


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("window", {"begin": 0, "end": 9, "width": 10, "tracks": "t99"}, 404),
        ("window", {"begin": 9, "end": 9, "width": 10, "tracks": "t0"}, 400),
        ("window", {"begin": "x", "end": 9, "width": 10, "tracks": "t0"}, 400),
        ("window", {"begin": 0, "end": 9, "width": 10**6, "tracks": "t0"}, 400),
        ("window", {"begin": 0, "end": 9, "width": 10, "tiles": 17, "tracks": "t0"}, 400),
        ("window", {"begin": 0, "end": 10**9, "width": 4096, "tracks": ",".join(["p0"] * 50)}, 400),
        ("window", {"begin": 0, "end": 9, "width": 10, "tracks": "../etc"}, 404),
        ("events/999999", {}, 404),
        ("search", {"text": "(", "regex": 1}, 400),
        ("search", {"text": ""}, 400),
        ("selection", {"begin": 5, "end": 4}, 400),
        ("tracks", {"host": "nobody"}, 404),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(drawn, path, query, status):
    answer = drawn.get(path, **query)

    assert answer.status_code == status
    assert answer.json["error"]


def test_ranges_on_streams_are_tracks_like_others_and_stand_for_their_stream_in_a_selection(tmp_path):
    timeline = Timeline(tmp_path, draw("""
        host main | M1-------M2-------
        host main | A------  A------
        host main |  L1       L2
        gpu0 s    |     K1--     K2--
    """))  # fmt: skip
    (device,) = (group for group in timeline.get("tracks").json["groups"] if group["kind"] == "device")
    projected = [track for track in device["tracks"] if track["kind"] == "projected"]
    (stream,) = (track for track in device["tracks"] if track["kind"] == "stream")
    assert [(track["name"], track["detail"], track["events"]) for track in projected] == [("Annotations", "s", 4)]

    both = f"{projected[0]['id']},{stream['id']}"
    _, columns, _ = timeline.window(begin=0, end=30 * 10**9, width=1000, tracks=both)
    ends = columns["row_begin"].tolist()
    assert columns["row_line"].tolist() == [stream["line"], projected[0]["line"], projected[0]["line"]]
    assert ends[-1] == len(columns["start"]) == 6
    kinds = columns["kind"][ends[1] :].tolist()
    assert sorted(set(kinds)) == [int(EventKind.STEP_MARK), int(EventKind.ANNOTATION)]

    selected = timeline.get("selection", begin=0, end=30 * 10**9, tracks=projected[0]["id"]).json
    assert [row["name"] for row in selected["rows"]] == ["kernel"]
    assert timeline.get("window", begin=0, end=9, width=9, tracks=f"t{projected[0]['line'] + 1}").status_code == 404
    assert timeline.get("steps").json["clocks"] == ""


def test_scopes_of_a_program_have_names_behind_those_of_the_trace(tmp_path):
    builder = TraceBuilder("vm")
    line = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU), "Stream #7", 7, LineKind.STREAM)
    for at, scope in enumerate(("encoder", "decoder")):
        stats = {"tf_op": f"jit(step)/{scope}/dot_general:"}
        line.event(f"kernel {at}", 2 * at * 10**9, 10**9, EventKind.KERNEL, stats)
    timeline = Timeline(tmp_path, builder.build())
    tracks = timeline.get("tracks").json
    (scopes,) = (track for track in tracks["groups"][0]["tracks"] if track["kind"] == "scoped")

    _, columns, _ = timeline.window(begin=0, end=5 * 10**9, width=1000, tracks=scopes["id"])
    names = timeline.get("names/0").json["names"]

    assert [names[each] for each in columns["type"].tolist()] == ["encoder", "decoder"]
    assert len(names) == tracks["types"] + 2
    assert timeline.get("names/1").json["names"] == []

    place = timeline.get("search", text="decode", direction="next", from_ps=0).json["place"]["spot"]
    assert (place["name"], place["line"], place["event"]) == ("decoder", scopes["line"], int(columns["event"][1]))
    assert timeline.get(f"events/{place['event']}").json["full_name"] == "decoder"
    assert timeline.get(f"events/{place['event']}/links").json["step"] == "capture"
    assert timeline.get("slices", text="coder").json["sum_ps"] == 2 * 10**9
    assert timeline.get(f"events/{place['event'] + 1}").status_code == 404
