"""A watch whose logdir is in a remote store: its rows and captures get there, within the quota."""

from __future__ import annotations

import json
from collections.abc import Iterator

import fsspec
import pytest

import stepscope
from stepscope.capture.watching import series
from stepscope.capture.watching.quota import RemoteRuns
from stepscope.capture.watching.series import RemoteSeries
from stepscope.formats import store
from stepscope.formats.series import find_runs, read_marks, read_series, series_place
from stepscope.overtime import examine_run

LOGDIR = "memory://watched/logs"


@pytest.fixture(autouse=True)
def _empty_store() -> Iterator[None]:
    yield
    system = fsspec.filesystem("memory")
    if system.exists("/watched"):
        system.rm("/watched", recursive=True)


def test_a_watch_writes_its_series_and_captures_there() -> None:
    with stepscope.watch(LOGDIR, window_every=0, window_steps=0, series="100s", slow_factor=1e6) as handle:
        for number in range(40):
            with stepscope.step(number):
                pass
        handle.trigger("look at this")

    (run,) = find_runs(LOGDIR)
    place = series_place(LOGDIR, run)
    (host,) = find_runs(LOGDIR)[run]
    assert sum(read_series(place, host)["steps"].to_pylist()) == 39  # the last one had not ended
    assert [mark["sentence"] for mark in read_marks(place)] == ["look at this"]
    assert [row["step"] for row in stepscope.load(LOGDIR).steps().rows][:3] == [0, 1, 2]
    report = examine_run(LOGDIR)
    assert report.figures["steps"] == 39
    assert len(report.captures) == 1


def test_rows_are_copied_as_they_come_and_packed_rows_stand_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    place = series_place(LOGDIR, "run")
    made = RemoteSeries(place, "host")
    for second in range(3):
        made.add({"unix_s": float(second), "steps": 1})
    made.tend()
    assert read_series(place, "host")["unix_s"].to_pylist() == [0.0, 1.0, 2.0]

    monkeypatch.setattr(series, "_PACK_ROWS", 3)
    made.tend()
    made.add({"unix_s": 3.0, "steps": 1})
    made.tend()
    assert read_series(place, "host")["unix_s"].to_pylist() == [0.0, 1.0, 2.0, 3.0]
    names = [entry.name for entry in store.walk(place).folders[0].files]
    assert sorted(names) == ["host.parquet", "host.tail.jsonl"]
    made.close()
    assert not made.folder.exists()


def test_a_store_that_fails_is_reported_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    place, works = series_place(LOGDIR, "run"), store.write_bytes
    made = RemoteSeries(place, "host")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write_bytes", lambda path, content: (_ for _ in ()).throw(OSError("the store is away")))
        for second in range(2):
            made.add({"unix_s": float(second)})
            made.tend()
    assert store.write_bytes is works
    made.tend()

    assert caplog.text.count("the store is away") == 1
    assert len(read_series(place, "host")) == 2
    made.close()


def test_the_oldest_captures_of_the_job_are_removed_there() -> None:
    kept = RemoteRuns(2500)
    for number in range(4):
        folder = f"{LOGDIR}/plugins/profile/run{number}"
        store.write_bytes(f"{folder}/host.xplane.pb", b"x" * 1000)
        assert kept.add(folder) == ([f"run{number - 2}"] if number >= 2 else [])
    store.write_bytes(f"{LOGDIR}/plugins/profile/of-another-job/host.xplane.pb", b"x" * 9000)

    assert [store.kind(f"{LOGDIR}/plugins/profile/run{number}") for number in range(4)] == [None, None] + ["folder"] * 2
    assert json.dumps(kept.add(f"{LOGDIR}/plugins/profile/run3")) == "[]"
