"""A watched run over time: what grew, what changed, and where its captures lie."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from stepscope.capture.watching.series import pack_rows
from stepscope.cli.main import run
from stepscope.errors import AccessError, NotFoundError, UsageError
from stepscope.formats import series
from stepscope.overtime import examine_run
from stepscope.overtime.examine import measure_growth

HOUR = 3600.0


def row(second, **values):
    return {"unix_s": 1.7e9 + second, "steps": 10, "step_ms_median": 20.0, "step_ms_max": 25.0, **values}


def write_rows(logdir, rows, run="run", host="host", name="tail"):
    folder = series.series_folder(logdir, run)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{host}.{name}.jsonl").open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in rows)
    return folder


def leaking_rows(bytes_per_hour, part="anonymous_bytes", count=400, seconds=30):
    chance = np.random.default_rng(3)
    rows = []
    for number in range(count):
        grown = bytes_per_hour * number * seconds / HOUR
        noise = chance.normal(0, 2e6)
        facts = {"resident_bytes": 1e9 + grown + noise, "anonymous_bytes": 8e8, "file_mapped_bytes": 2e8}
        rows.append(row(number * seconds, **{**facts, "python_blocks": 1e6, part: 8e8 + grown + noise}))
    return rows


# -- growth ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alike", [0.0, 0.8], ids=["independent rows", "rows like their neighbours"])
def test_the_slope_of_a_leak_is_measured_with_an_interval_that_holds_it(alike):
    hours = np.arange(0, 10, 0.02)
    held, clear = 0, 0
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0, 20, len(hours))
        for at in range(1, len(noise)):
            noise[at] += alike * noise[at - 1]
        growth = measure_growth(hours * HOUR, 1000 + 12.0 * hours + noise)
        held += growth.least <= 12.0 <= growth.most
        clear += growth.is_clear

    assert held >= 35  # of 40: the interval is one of 95 %
    assert clear >= 30


@pytest.mark.parametrize(
    "levels",
    [
        1000 + np.random.default_rng(2).normal(0, 30, 500),
        1000 + 5 * np.sin(np.arange(500) / 20),
        np.concatenate([np.linspace(0, 1000, 60), np.full(440, 1000.0)]),  # the warm-up
        np.concatenate([np.full(250, 1000.0), np.full(250, 1100.0)]),  # one step up is no slope
        1000 + np.cumsum(np.random.default_rng(5).normal(0, 0.2, 500)),  # wanders
    ],
    ids=["noise", "waves", "warm-up", "one step", "wandering"],
)
def test_what_does_not_grow_is_not_called_growing(levels):
    assert not measure_growth(np.arange(500) * 60.0, levels).is_clear


def test_too_few_rows_have_no_slope():
    assert measure_growth(np.arange(5.0), np.arange(5.0)) is None
    assert measure_growth(np.array([]), np.array([])) is None
    assert measure_growth(np.arange(100.0), np.full(100, np.nan)) is None


# -- the files ---------------------------------------------------------------------------------------------------------


def test_packed_rows_and_later_ones_are_one_series(tmp_path):
    folder = write_rows(tmp_path, [row(0), row(10)], name="tail-1")
    write_rows(tmp_path, [row(20)])
    pack_rows(folder, "host")
    write_rows(tmp_path, [row(20), row(30, value_loss=0.5)], name="tail-2")  # 20 was packed by a job that crashed then

    table = series.read_series(folder, "host")

    assert table["unix_s"].to_pylist() == [1.7e9, 1.7e9 + 10, 1.7e9 + 20, 1.7e9 + 30]
    assert table["value_loss"].to_pylist() == [None, None, None, 0.5]
    assert series.packed_path(folder, "host").exists()


def test_a_line_that_was_cut_is_left_out(tmp_path):
    folder = write_rows(tmp_path, [row(0), row(10)])
    with series.tail_path(folder, "host").open("a") as file:
        file.write('{"unix_s": 17000')

    assert len(series.read_series(folder, "host")) == 2


KILLED = """
import os, signal, sys
from pathlib import Path
from stepscope.capture.watching.series import SeriesFile

SeriesFile(Path(sys.argv[1]), "host").add({"unix_s": 1.7e9, "steps": 3})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_job_that_is_killed_loses_no_row(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)

    assert done.returncode == -signal.SIGKILL
    assert series.read_series(tmp_path, "host")["steps"].to_pylist() == [3]


# -- the report --------------------------------------------------------------------------------------------------------


def test_a_leak_is_named_with_its_slope_and_what_grows(tmp_path):
    write_rows(tmp_path, leaking_rows(50e6))

    report = examine_run(str(tmp_path), captures=0)

    (finding,) = report.findings
    assert finding.startswith("memory of the process grows by 5")
    assert "% of that is heap and other anonymous memory (objects and arrays of the program)" in finding
    assert finding.endswith("the number of Python objects does not grow, so it is memory of libraries or arrays")
    process = next(row for row in report.growth if row["memory"] == "process")
    assert process["least_bytes_per_hour"] < 50e6 < process["most_bytes_per_hour"]


def test_mapped_files_that_grow_are_told_from_objects(tmp_path):
    write_rows(tmp_path, leaking_rows(80e6, part="file_mapped_bytes"))

    assert "mapped files, such as data sets" in examine_run(str(tmp_path), captures=0).findings[0]


def test_nothing_stands_out_in_a_healthy_run(tmp_path):
    write_rows(tmp_path, leaking_rows(0.0))

    report = examine_run(str(tmp_path), captures=0)

    assert report.findings == ("nothing stands out: no trigger, no growing memory, no change of the step time",)
    assert report.figures["steps"] == 4000


def test_steps_that_become_longer_are_named(tmp_path):
    write_rows(tmp_path, [row(10 * number, step_ms_median=20 + 0.02 * number) for number in range(300)])

    assert "the median step became 2" in examine_run(str(tmp_path), captures=0).findings[0]


def test_steps_that_only_waited_for_a_processor_are_named_and_unknown_in_older_series(tmp_path):
    write_rows(tmp_path, [row(30 * number, slow_steps=2, contended_steps=1) for number in range(50)])
    write_rows(tmp_path, [row(30 * number, slow_steps=2) for number in range(50)], run="before")

    report, before = examine_run(str(tmp_path), "run"), examine_run(str(tmp_path), "before")
    assert "50 of 500 steps were slow only because the thread waited for a core" in report.findings
    assert (report.figures["slow_steps"], report.figures["contended_steps"]) == (100, 50)
    assert (before.figures["slow_steps"], before.figures["contended_steps"]) == (100, None)


def test_triggers_stand_in_the_rows_of_their_time(tmp_path):
    folder = write_rows(tmp_path, [row(0), row(10), row(20)])
    mark = {"unix_s": 1.7e9 + 12, "trigger": "slow step", "sentence": "Step 7 was slow", "step": 7, "run": "gone"}
    series.marks_path(folder, "host").write_text(json.dumps(mark) + "\n")

    report = examine_run(str(tmp_path), captures=3)

    assert [each["marks"] for each in report.rows] == ["", "", "slow step"]
    assert report.findings == ("1 trigger (1 x slow step); the last: Step 7 was slow",)
    assert report.captures == ()  # the quota has removed it


def test_many_rows_are_thinned_out_and_their_steps_added_up(tmp_path):
    write_rows(tmp_path, [row(number) for number in range(5000)])

    report = examine_run(str(tmp_path), captures=0)

    assert len(report.rows) == 1000
    assert sum(each["steps"] for each in report.rows) == 50_000


def test_the_newest_run_is_shown_and_others_by_name(tmp_path):
    write_rows(tmp_path, [row(0)], run="2026_01_01")
    write_rows(tmp_path, [row(0)], run="2026_01_02")

    assert examine_run(str(tmp_path), captures=0).figures["run"] == "2026_01_02"
    assert examine_run(str(tmp_path), "2026_01_01", captures=0).figures["run"] == "2026_01_01"
    with pytest.raises(UsageError, match="no time series of 'other'"):
        examine_run(str(tmp_path), "other")


def test_a_logdir_without_a_series_says_how_to_get_one(tmp_path):
    with pytest.raises(NotFoundError, match="there is no time series"):
        examine_run(str(tmp_path))


def test_a_logdir_that_may_not_be_read_is_not_called_empty(tmp_path, monkeypatch):
    def refuse(path):
        raise AccessError("permission denied", path=path)

    monkeypatch.setattr("stepscope.formats.store.kind", refuse)
    with pytest.raises(AccessError, match="permission denied"):
        examine_run(str(tmp_path))


def test_the_command_prints_the_findings_and_the_rows(tmp_path, capfd):
    write_rows(tmp_path, leaking_rows(50e6))

    assert run(["over-time", str(tmp_path), "--captures", "0"]) == 0
    shown = capfd.readouterr().out
    assert run(["over-time", str(tmp_path), "--captures", "0", "--format", "csv"]) == 0
    rows = capfd.readouterr().out.splitlines()

    assert "memory of the process grows" in " ".join(shown.split())
    assert rows[0].startswith("hour,time,host,steps,step_ms_median")
    assert len(rows) == 401


def test_the_command_that_triggers_writes_a_request(tmp_path, capsys):
    ring = tmp_path / "plugins" / "profile" / "run" / "vm.xplane.pb.partial"
    ring.parent.mkdir(parents=True)
    ring.touch()
    assert run(["trigger", str(tmp_path), "why so slow"]) == 0

    (request,) = (tmp_path / "plugins" / ".stepscope" / "watch" / "requests").glob("*.json")
    assert json.loads(request.read_text())["reason"] == "why so slow"
    assert "asked for 20" in capsys.readouterr().out


def test_a_trigger_that_no_watch_reads_asks_for_nothing(tmp_path, capsys):
    ring = tmp_path / "plugins" / "profile" / "run" / "vm.xplane.pb.partial"
    assert run(["trigger", str(tmp_path)]) == 1
    said = capsys.readouterr()
    ring.parent.mkdir(parents=True)
    ring.touch()

    assert ("no watch writes here" in said.err, said.out) == (True, "")
    assert run(["trigger", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""


def test_of_two_lines_of_one_trigger_the_one_with_its_cause_counts(tmp_path):
    first = {"unix_s": 1.7e9, "trigger": "slow step", "sentence": "Step 3 took 90 ms"}
    lines = [first, {**first, "trigger": "signal"}, {**first, "sentence": "Step 3 took 90 ms: Python is longer"}]
    folder = write_rows(tmp_path, lines, name="marks")

    found = [(mark["trigger"], mark["sentence"]) for mark in series.read_marks(folder)]
    assert found == [("slow step", "Step 3 took 90 ms: Python is longer"), ("signal", "Step 3 took 90 ms")]
