"""The command line: exit statuses, forms of output, messages."""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pyarrow.parquet
import pytest
from rich.console import Console

import stepscope
from stepscope import __version__
from stepscope.analysis.registry import TOOLS
from stepscope.capture.client import CaptureOutcome, Phase, WorkerStatus
from stepscope.cli import capture, screen, show
from stepscope.cli.main import are_loops_stale, run
from stepscope.cli.options import OutputFormat
from stepscope.cli.show import file_size_text, working
from stepscope.doctor import Check
from stepscope.doctor.report import make_report
from stepscope.errors import AccessError
from stepscope.formats import progress
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, PlaneKind, TraceBuilder

MS = 10**9


def training(host: str = "worker", steps: int = 3) -> bytes:
    """A host that trains: steps of 10 ms, of which 4 wait for input and 5 compute.

    train   |==========|==========|==========|
    wait     ....       ....       ....
    matmul       =====      =====      =====
    """
    builder = TraceBuilder(host, start_unix_ns=10**18)
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    for step in range(steps):
        begin = step * 10 * MS
        line.event("train", begin, 10 * MS, EventKind.STEP_MARK, {"step_num": step, "_r": 1})
        line.event("IteratorGetNext:IteratorGetNext", begin, 4 * MS, EventKind.INPUT_WAIT)
        line.event("dense/MatMul:MatMul", begin + 4 * MS, 5 * MS, EventKind.OP)
    return write(builder.build())


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    for run_name in ("2026_01_01_00_00_00", "2026_01_02_00_00_00"):
        folder = tmp_path / "logs" / "plugins" / "profile" / run_name
        folder.mkdir(parents=True)
        for host in ("a", "b"):
            (folder / f"{host}.xplane.pb").write_bytes(training(host))
    return tmp_path / "logs"


def test_overview_as_json_is_one_object_with_the_names_of_the_contract(logdir: Path, capsys) -> None:
    assert run(["overview", str(logdir), "--format", "json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["step_time_ms"] == {"mean": 10.0, "std": 0.0, "min": 10.0, "max": 10.0, "count": 3}
    assert out["breakdown_ms"] == {
        "compilation": 0.0, "output": 0.0, "input": 4.0, "kernel_launch": 0.0, "host_compute": 5.0,
        "device_collectives": 0.0, "device_to_device": 0.0, "device_compute": 0.0, "other": 1.0,
    }  # fmt: skip
    assert (out["input_bound_percent"], out["verdict"], out["steps_source"]) == (40.0, "input_bound", "markers")
    assert out["device_compute_precision_percent"] == {"16bit": None, "32bit": None}
    assert out["hosts"] == ["a", "b"]
    assert out["environment"]["host_count"] == 2
    assert out["environment"]["device_type"] == "CPU"
    assert out["top_ops"][0] == {
        "name": "dense/MatMul", "category": "MatMul", "self_time_ms": 30.0, "self_percent": 55.5556,
        "cumulative_percent": 55.5556, "calls": 6,
    }  # fmt: skip
    advice = out["advice"][0]
    assert {"id", "class", "title", "evidence", "predicted_speedup", "actions", "tool"} <= advice.keys()
    assert advice["predicted_speedup"] == round(100 / 60, 2)


def test_steps_as_json_has_one_row_a_step_and_host(logdir: Path, capsys) -> None:
    assert run(["steps", str(logdir), "--host", "b", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["step"], row["name"], row["start_ms"], row["duration_ms"], row["input"]) for row in rows] == [
        (0, "train 0", 0.0, 10.0, 4.0),
        (1, "train 1", 10.0, 10.0, 4.0),
        (2, "train 2", 20.0, 10.0, 4.0),
    ]


def test_summary_says_in_ten_lines_what_to_do_first(logdir: Path, capsys) -> None:
    assert run(["summary", str(logdir)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 10
    assert lines[0].startswith("verdict    input-bound: 40.0 % of each step is input, mostly `Iter")
    assert any(line.startswith("do first") for line in lines)


@pytest.mark.parametrize("form", list(OutputFormat))
@pytest.mark.parametrize("tool", ["overview", "steps"])
def test_every_tool_writes_every_form_to_a_file(tool: str, form: str, logdir: Path, tmp_path: Path, capsys) -> None:
    target = tmp_path / f"out.{form}"
    assert run([tool, str(logdir), "--format", form, "--output", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert target.stat().st_size > 100
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", target.name]
    if form == "parquet":
        assert pyarrow.parquet.read_table(target).num_rows > 0


def test_a_link_stays_and_its_file_is_written(logdir: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    file, link = tmp_path / "far" / "real.csv", tmp_path / "link.csv"
    file.write_text("old")
    link.symlink_to(file)
    assert run(["steps", str(logdir), "--format", "csv", "--output", str(link)]) == 0
    assert link.is_symlink()
    assert file.read_text().startswith("step,name,host")
    assert list(file.parent.iterdir()) == [file]


def test_a_dash_is_stdout(logdir: Path, capfdbinary, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    commands = [
        [*words, str(logdir), "--output", "-"]
        for words in (["steps", "--format", "csv"], ["trace", "--format", "chrome"])
    ]
    for command in commands:
        run(command)  # the first time may say on stderr that loops are compiled
    capfdbinary.readouterr()
    for command in commands:
        assert run(command) == 0
    out, err = capfdbinary.readouterr()

    trace = out[out.index(b'{"displayTimeUnit"') :]
    assert out.startswith(b"step,name,host")
    assert err.decode() == f"stdout ({file_size_text(len(trace))})\n"
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB")],
)
def test_sizes_are_readable(nbytes: int, text: str) -> None:
    assert file_size_text(nbytes) == text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_written_to_and_not_replaced(logdir: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other_end:
        read = other_end.submit(pipe.read_text)
        assert run(["steps", str(logdir), "--format", "csv", "--output", str(pipe)]) == 0
        assert read.result().startswith("step,name,host")
    assert pipe.is_fifo()


def test_top_limits_the_rows_in_every_form(logdir: Path, capsys) -> None:
    assert run(["steps", str(logdir), "--format", "csv", "--top", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert run(["steps", str(logdir), "--format", "json", "--top", "1"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 1
    assert run(["steps", str(logdir), "--top", "1"]) == 0
    assert "5 more rows" in capsys.readouterr().out


def test_rows_can_be_sorted_and_filtered(logdir: Path, capsys) -> None:
    assert run(["steps", str(logdir), "--format", "csv", "--sort=-start_ms", "--where", "host=B", "--top", "2"]) == 0
    rows = [line.split(",")[:4] for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["2", "train 2", "b", "20.0"], ["1", "train 1", "b", "10.0"]]
    assert run(["steps", str(logdir), "--sort", "nonsense"]) == 2
    assert "columns: step, name, host, start_ms" in capsys.readouterr().err
    assert run(["steps", str(logdir), "--where", "host"]) == 2
    assert "--where COLUMN=TEXT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["overview", "{logdir}/nothing"], 1, "no such file or folder"),
        (["overview", "{logdir}", "--run", "x"], 2, "2026_01_01_00_00_00"),
        (["overview", "{logdir}", "--host", "x"], 2, "the hosts are: a, b"),
        (["overview", "{logdir}", "--output", "{logdir}/none/x", "--format", "json"], 1, "the folder does not exist"),
        (["summary", "{empty}"], 1, "empty"),
    ],
)
def test_a_failure_is_one_line_that_says_what_where_and_what_to_do(
    arguments: list[str], status: int, said: str, logdir: Path, tmp_path: Path, capsys
) -> None:
    empty = tmp_path / "empty.xplane.pb"
    empty.touch()
    filled = [argument.format(logdir=logdir, empty=empty) for argument in arguments]
    assert run(filled) == status
    streams = capsys.readouterr()
    assert streams.out == ""
    assert len(streams.err.splitlines()) == 1
    assert said in streams.err
    assert "Traceback" not in streams.err


def test_version_and_help_end_with_zero(capsys) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"stepscope {__version__}\n"
    assert run(["--help"]) == 0
    assert "overview" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("guide", "ours"),
    [
        ("overview_page", "overview"), ("input_pipeline_analyzer", "input-pipeline"), ("tensorflow_stats", "op-stats"),
        ("tf_data_bottleneck_analysis", "tf-data"), ("kernel_stats", "kernel-stats"),
        ("memory_profile", "memory-profile"), ("pod_viewer", "pod-viewer"),
    ],
)  # fmt: skip
def test_tools_answer_to_the_names_of_the_guide(guide: str, ours: str, logdir: Path, capsys) -> None:
    tools = []
    for name in (guide, ours):
        assert run([name, str(logdir), "--format", "json"]) == 0
        tools.append(json.loads(capsys.readouterr().out)["tool"])

    assert tools == [ours, ours]


def test_a_damaged_host_is_left_out_and_named(logdir: Path, capsys) -> None:
    broken = logdir / "plugins" / "profile" / "2026_01_02_00_00_00" / "b.xplane.pb"
    broken.write_bytes(b"not a profile")
    assert run(["overview", str(logdir), "--format", "json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert (out["hosts"], out["partial"]) == (["a"], True)
    assert "b.xplane.pb" in out["warnings"][0]


def test_a_cut_file_says_partial_in_every_form(tmp_path: Path, capsys) -> None:
    whole = training()
    path = tmp_path / "cut.xplane.pb"
    path.write_bytes(whole[: len(whole) * 9 // 10])
    assert run(["overview", str(path), "--format", "json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["partial"] is True
    assert any("[truncated]" in warning and "cut.xplane.pb at byte" in warning for warning in out["warnings"])
    assert run(["summary", str(path)]) == 0
    assert capsys.readouterr().out.startswith("! [truncated]")


def test_an_unforeseen_error_is_told_without_a_traceback(logdir: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("stepscope.formats.base.Format.read", lambda *_: 1 / 0)
    assert run(["overview", str(logdir)]) == 1
    assert "[internal] ZeroDivisionError" in capsys.readouterr().err
    monkeypatch.setenv("STEPSCOPE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run(["overview", str(logdir)])


# -- summary -----------------------------------------------------------------------------------------------------


def test_the_summary_in_another_form_is_the_whole_overview(logdir: Path, capsys) -> None:
    assert run(["summary", str(logdir), "--format", "json"]) == 0
    summary = capsys.readouterr().out
    assert run(["overview", str(logdir), "--format", "json"]) == 0
    assert summary == capsys.readouterr().out


def test_the_ten_lines_of_the_summary_can_go_to_a_file(logdir: Path, tmp_path: Path, capsys) -> None:
    assert run(["summary", str(logdir)]) == 0
    printed = capsys.readouterr().out
    assert run(["summary", str(logdir), "--output", str(tmp_path / "summary.txt")]) == 0

    assert (tmp_path / "summary.txt").read_text() == printed
    assert capsys.readouterr().out == ""


# -- wrong words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["PATH"], ["PATH", "summary"]], ids=["no command", "in the wrong order"])
def test_a_path_in_the_place_of_the_command_is_told_the_command(logdir: Path, capsys, words: list[str]) -> None:
    assert run([str(logdir) if word == "PATH" else word for word in words]) == 2

    said = "".join(capsys.readouterr().err.replace("│", "").split())
    assert f"stepscopesummary{logdir}" in said


def test_a_part_that_there_is_not_is_answered_with_those_there_are(logdir: Path, capsys) -> None:
    assert run(["whatif", str(logdir), "--remove", "zzz"]) == 2

    assert "categories: compilation, output, input, " in capsys.readouterr().err


def test_changes_of_several_kinds_are_predicted_together(logdir: Path, capsys) -> None:
    changes = ["--remove", "input", "--scale", "host_compute=0.5", "--move", "python", "--to", "workers=2"]
    assert run(["whatif", str(logdir), *changes, "--format", "json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert [(each["change"], each["part"], each["number"]) for each in found["changes"]] == [
        ("remove", "input", None),
        ("scale", "host_compute", 0.5),
        ("move", "python", 2.0),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scale", "op=x"], "--scale op=x has no factor"),
        (["--move", "input", "--to", "threads=2"], "--to threads=2 is not a number of workers"),
        ([], "no change is given"),
    ],
)
def test_changes_that_make_no_sense_are_refused(logdir: Path, capsys, words: list[str], message: str) -> None:
    assert run(["whatif", str(logdir), *words]) == 2

    assert message in capsys.readouterr().err


# -- doctor ------------------------------------------------------------------------------------------------------


def test_doctor_lists_the_sessions_and_what_they_lack(logdir: Path, capsys) -> None:
    assert run(["doctor", str(logdir), "--format", "json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert [(row["run"], row["hosts"], row["state"], row["steps"]) for row in out["sessions"]] == [
        ("2026_01_02_00_00_00", 2, "note", 3),
        ("2026_01_01_00_00_00", 2, "note", 3),
    ]
    assert any(check["found"] == "not recorded: Python calls" and check["remedy"] for check in out["checks"])


def test_doctor_fails_where_something_stands_in_the_way_of_a_capture(capsys, monkeypatch) -> None:
    broken = [Check("gpu", "problem", "1 NVIDIA", "unset it"), Check("python", "ok", "3.11")]
    monkeypatch.setattr("stepscope.doctor.examine_machine", lambda: make_report(broken))

    assert run(["doctor", "--format", "json"]) == 1

    captured = capsys.readouterr()
    assert json.loads(captured.out)["checks"][0]["remedy"] == "unset it"
    assert captured.err == (
        "stepscope: [machine] 1 problem would make a capture fail here: gpu; see the report for what to do\n"
    )


# -- screens that can show little, disks that are full -----------------------------------------------------------


def in_a_process(*arguments: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "stepscope", *arguments]
    return subprocess.run(command, capture_output=True, env=environment, check=False)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_screen_without_unicode_gets_the_same_in_plain_letters(encoding: str, logdir: Path) -> None:
    done = in_a_process("overview", str(logdir), encoding=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    plain = [line.split() for line in done.stdout.decode(encoding).splitlines()]
    assert ["host", "eager", "-"] in plain
    whole = in_a_process("overview", str(logdir)).stdout.decode()
    assert ["host", "eager", "\u2013"] in [line.split() for line in whole.splitlines()]


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:surrogateescape"])
def test_a_script_finds_its_streams_as_python_makes_them(encoding: str, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("import sys; print(sys.stdout.errors, sys.stderr.errors)")
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    alone = subprocess.run([sys.executable, str(script)], capture_output=True, env=environment, check=True)
    done = in_a_process("run", "--quiet", "--logdir", str(tmp_path), str(script), encoding=encoding)
    assert done.stdout == alone.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device to write to")
@pytest.mark.parametrize("form", ["table", "csv"])
def test_a_full_disk_is_no_defect_of_ours(form: str, logdir: Path) -> None:
    done = in_a_shell(f"steps '{logdir}' --format {form} > /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("stepscope: [output] cannot write the result: No space left")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("form", ["table", "csv"])
def test_whoever_reads_the_output_may_stop_at_any_time(form: str, logdir: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "stepscope", "steps", str(logdir), "--format", form]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(os.name != "posix", reason="closes streams as a shell of POSIX does")
@pytest.mark.parametrize("closed", ["1", "2"])
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_stream_that_the_caller_closed_takes_everything(closed: str, form: str, logdir: Path) -> None:
    done = in_a_shell(f"steps '{logdir}' --format {form} {closed}>&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (closed == "2")


@pytest.mark.skipif(os.name != "posix", reason="other systems do not let a folder go that somebody is in")
@pytest.mark.parametrize("arguments", ["doctor", "summary logs", "run job.py"])
def test_a_folder_that_was_removed_is_told(arguments: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = in_a_shell(arguments, before=f"cd '{gone}' && rmdir '{gone}' &&")
    assert done.returncode == 1
    assert done.stderr == (
        "stepscope: [input] the folder that this shell is in has been removed; change to another folder with cd\n"
    )


def in_a_shell(arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = f'{before} "{sys.executable}" -m stepscope {arguments}'
    return subprocess.run(command, shell=True, capture_output=True, text=True, env=environment, check=False)


# -- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["overview", ""], "the path is empty"),
        (["steps", "{logdir}", "--sort", "durationms"], "did you mean duration_ms?"),
        (["overview", "{logdir}", "--steps", "7-9"], "there are no steps 7 to 9; the steps are 0 to 2"),
        (["overview", "{logdir}", "--steps", "7"], "there is no step 7"),
        (["sumary", "{logdir}"], "summary"),
    ],
)
def test_a_mistake_is_told_with_what_was_meant(arguments: list[str], said: str, logdir: Path, capsys) -> None:
    assert run([argument.format(logdir=logdir) for argument in arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
@pytest.mark.parametrize("tool", ["steps", "op-stats"])
def test_a_condition_that_no_row_meets_is_told(logdir: Path, capsys, tool: str, form: str) -> None:
    assert run([tool, str(logdir), "--where", "name=nothing such", "--format", form]) == 0

    shown = capsys.readouterr().out
    assert "no row has name=nothing such" in shown
    assert "neither host nor device recorded any" not in shown  # which is not why the list is empty


def test_the_help_begins_with_what_people_need_first(capsys) -> None:
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    panels = ["Start here", "Record and measure", "Look closer", "Share and automate", "Options", "Examples"]
    assert sorted(panels, key=lambda title: said.index(f"{title}:\n")) == panels
    for command in ("summary", "advice", *(tool.name for tool in TOOLS), "trace", "run"):
        assert sum(line.startswith(f"  {command} ") for line in said.splitlines()) == 1


def test_the_help_has_a_line_for_each_command_in_a_narrow_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Start here:")[2].partition("Options:")[0]

    assert not re.search(r"^ {3,}", listed, re.MULTILINE)
    assert all(len(line) <= 80 and line.endswith(".") for line in listed.splitlines() if line.startswith(" "))


def test_a_mistyped_option_of_run_is_no_script(capsys) -> None:
    assert run(["run", "--stpes", "3", "train.py"]) == 2
    assert "there is no option --stpes; did you mean --steps?; options of the script go" in capsys.readouterr().err


def test_what_libraries_of_object_stores_log_is_told_in_our_words_only(capsys, monkeypatch) -> None:
    def fails(*_: object, **named: object) -> NoReturn:
        logging.getLogger("gcsfs").exception("refused")
        raise AccessError("the store refused")

    monkeypatch.setattr("stepscope.api.load", fails)
    monkeypatch.setattr(logging.getLogger("gcsfs"), "propagate", False)  # to the handlers of the tests
    monkeypatch.setattr(logging, "lastResort", logging.StreamHandler())
    screen.adapt(["summary", "gs://bucket"])
    try:
        assert run(["summary", "gs://bucket"]) == 1
    finally:
        screen.restore_streams()

    assert capsys.readouterr().err == "stepscope: [no-access] the store refused\n"
    assert logging.getLogger("gcsfs").handlers == []


@pytest.mark.parametrize(("command", "argument"), [("doctor", "[LOGDIR]"), ("run", "[ARGS]")])
def test_what_may_be_left_out_stands_in_brackets_once(command: str, argument: str, capsys) -> None:
    assert run([command, "--help"]) == 0
    usage = next(line for line in capsys.readouterr().out.splitlines() if "Usage:" in line)
    assert argument in usage


def test_no_help_repeats_the_brackets_of_an_argument_or_an_option(capsys) -> None:
    from stepscope.cli.commands import all_names

    for command in all_names():
        assert run([command, "--help"]) == 0
        text = capsys.readouterr().out
        usage = next(line for line in text.splitlines() if "Usage:" in line)
        assert "[[" not in usage
        assert "......" not in usage.replace(" ", "")
        options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)
        assert len(options) == len(set(options)), command


def test_examples_of_sql_keep_their_text(capsys) -> None:
    assert run(["sql", "--help"]) == 0
    assert "max(b.step), max(a.step)" in " ".join(capsys.readouterr().out.split())


def test_help_is_a_command_as_well(capsys) -> None:
    for words, same in ((["help"], ["--help"]), (["help", "steps"], ["steps", "--help"])):
        assert run(words) == 0
        told = capsys.readouterr().out
        assert run(same) == 0
        assert told.split() == capsys.readouterr().out.split() != []
    assert run(["help", "stpes"]) == 2


def test_a_profile_without_steps_leads_to_how_they_are_recorded(tmp_path: Path, capsys) -> None:
    path = tmp_path / "w.pt.trace.json"
    path.write_text('{"traceEvents": [{"ph": "C", "name": "memory", "pid": 1, "ts": 1, "args": {"value": 2}}]}')
    assert run(["summary", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "do first   record again, with the missing data" in lines
    assert any(line.startswith("           - step marks: ") for line in lines)
    assert len(lines) <= 10


def test_a_long_read_shows_its_share_and_the_time_that_is_left(monkeypatch) -> None:
    clock = itertools.count(100)  # a second later each time
    status = show._Status(lambda: float(next(clock)))
    lines = []
    with progress.watched_by(status), progress.listening(lambda _: None, 400):
        for _ in range(4):
            progress.advance(100)
            lines.append(status.line())
    status.update("analysing host")

    assert lines == ["working: 25 %, 3 s left", "working: 50 %, 2 s left", "working: 75 %, 1 s left", "working: 100 %"]
    assert status.line() == "analysing host"


def test_a_file_that_is_read_moves_the_progress_line(logdir: Path, monkeypatch) -> None:
    status = show._Status()
    lines: list[str] = []
    monkeypatch.setattr(status, "_draw", lambda: lines.append(status.line()))
    with progress.watched_by(status):
        stepscope.load(logdir, host="a", progress=status.update).steps()

    assert re.fullmatch(r"reading a \(0\.0 MB\)", lines[0])
    assert re.fullmatch(r"reading a \(0\.0 MB\): \d+ %(, 1 s left)?", lines[1])
    assert lines[-1].startswith("analysing a ")


def test_brackets_in_a_name_are_no_markup_while_work_goes_on(monkeypatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with working() as tell:
        tell("exp[lr=0.1]/[/run]: reading a host")


def test_brackets_in_an_address_and_in_an_answer_are_no_markup(capsys) -> None:
    answer = "it says: [already-running] [/logs]: a capture is already running"
    worker = WorkerStatus("[fe80::1]:6009", Phase.FAILED, detail=answer)
    picture = capture._ProgressTable()
    picture.take(worker)

    Console(width=200).print(picture.table())
    capture._print_outcome(CaptureOutcome((worker,), None, cancelled=False))

    lines = capsys.readouterr().out.splitlines()
    assert [(worker.address in line, answer in line) for line in lines] == [(True, True), (False, False), (True, True)]


def test_a_demo_that_does_not_exist_begins_nothing(tmp_path: Path, capsys) -> None:
    assert run(["demo", "--framework", "caffe", "--logdir", str(tmp_path / "logs")]) == 2
    assert capsys.readouterr().err.startswith("stepscope: [usage] there is no demo for caffe; choose one of: jax")


def test_a_terminal_shows_the_verdict_in_bold_and_a_bar_of_causes(monkeypatch, tmp_path, capsys) -> None:
    (tmp_path / "worker.xplane.pb").write_bytes(training())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    assert run(["summary", str(tmp_path)]) == 0

    shown = capsys.readouterr().out
    assert "\x1b[1mverdict " in shown
    assert re.search(r"\ngoes to .*\n {11}\x1b\[38;2;[^m]*m█", shown)


@pytest.mark.parametrize(("source_s", "stale"), [(50, False), (150, True)])
def test_loops_that_are_older_than_their_sources_are_stale(tmp_path: Path, source_s: int, stale: bool) -> None:
    for name, changed_s in ((".native-stamp", 100), ("ops.pyx", source_s)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (changed_s, changed_s))

    assert are_loops_stale(tmp_path) == stale
    (tmp_path / ".native-stamp").unlink()
    assert not are_loops_stale(tmp_path)  # an installed package has none
