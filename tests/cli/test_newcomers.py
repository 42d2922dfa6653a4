"""What a newcomer types and meets: stdin, defaults from files, the manual page, words that mean the same everywhere."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from draw import draw
from places import ROOT
from program_runs import run_command

from stepscope.capture.schedule_runner import ScheduleRunner
from stepscope.capture.schedules import schedule
from stepscope.cli import defaults, stdin
from stepscope.cli.commands import all_names
from stepscope.cli.main import run
from stepscope.errors import AccessError, UnreadableError, UsageError
from stepscope.formats.xspace.writer import write

STEPPED = "host main | M0--M1--M2--M3--\nhost main |  a-  a-  a-  a-"


@pytest.fixture
def profile(tmp_path) -> Path:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(write(draw(STEPPED)))
    return path


@pytest.fixture(autouse=True)
def no_files_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    defaults.read_files.cache_clear()
    yield
    defaults.read_files.cache_clear()


# -- stdin -----------------------------------------------------------------------------------------------------------


def feed(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_a_dash_reads_a_profile_from_stdin(profile, monkeypatch, capsys):
    feed(monkeypatch, profile.read_bytes())

    assert run(["steps", "-", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 4


def test_the_summary_names_the_file_that_was_given(profile, monkeypatch, capsys):
    feed(monkeypatch, profile.read_bytes())

    assert (run(["summary", profile.name]), run(["summary", "-"])) == (0, 0)
    assert re.findall(r"^recorded .*; from (.*)$", capsys.readouterr().out, re.MULTILINE) == [profile.name, "stdin"]


@pytest.mark.parametrize(
    ("content", "says"), [(b"", "nothing came on stdin"), (b"PK\x03\x04", "not those of a profile")]
)
def test_what_is_no_profile_on_stdin_is_refused(monkeypatch, content, says):
    feed(monkeypatch, content)

    with pytest.raises(UnreadableError, match=says):
        stdin.save_stdin()


def test_a_profile_that_begins_with_its_host_is_known_by_its_content(profile, monkeypatch):
    feed(monkeypatch, b"\x22\x02vm" + profile.read_bytes())

    path = stdin.save_stdin()

    assert path.name == "stdin.xplane.pb"
    shutil.rmtree(path.parent)


# -- defaults ----------------------------------------------------------------------------------------------------------


def test_a_project_s_defaults_come_before_the_user_s_and_the_command_line_before_both(tmp_path, profile, capsys):
    (tmp_path / "config" / "stepscope").mkdir(parents=True)
    (tmp_path / "config" / "stepscope" / "config.toml").write_text('[steps]\ntop = 2\nformat = "csv"\n')
    (tmp_path / "pyproject.toml").write_text("[tool.stepscope.steps]\ntop = 3\n")

    assert defaults.read() == {"steps": {"top": 3, "form": "csv"}}
    assert run(["steps", str(profile), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["tool"] == "steps"


def test_defaults_apply_to_tools(tmp_path, profile, capsys):
    (tmp_path / "pyproject.toml").write_text('[tool.stepscope.steps]\nformat = "csv"\n')

    assert run(["steps", str(profile)]) == 0
    assert capsys.readouterr().out.startswith("step,name,")


def test_a_default_for_an_option_that_does_not_exist_is_refused_with_its_file(tmp_path, profile, capsys):
    (tmp_path / "pyproject.toml").write_text("[tool.stepscope.steps]\ntpo = 3\n")

    assert run(["steps", str(profile)]) == 2
    said = capsys.readouterr().err
    assert "steps has no option tpo; did you mean top?" in said
    assert str(tmp_path / "pyproject.toml") in said
    assert run(["steps", "--help"]) == 0
    assert run(["op-stats", str(profile)]) == 0


def test_a_file_of_defaults_that_is_none_is_named(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.stepscope.run\n")
    with pytest.raises(UsageError, match="not TOML"):
        defaults.read()
    defaults.read_files.cache_clear()
    (tmp_path / "pyproject.toml").write_text("[tool.stepscope]\nrun = 3\n")
    with pytest.raises(UsageError, match="not a table of options"):
        defaults.read()


def test_a_logdir_that_may_not_be_read_is_not_served(tmp_path, monkeypatch, capsys):
    def refuse(path):
        raise AccessError("permission denied", path=path)

    monkeypatch.setattr("stepscope.formats.session.find_sessions", refuse)
    assert run(["open", str(tmp_path), "--no-browser"]) == 1
    assert "permission denied" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "said"),
    [("", "stepscope: [not-running]"), ("import logging; logging.basicConfig(format='LOG %(message)s')", "LOG [not")],
)
def test_what_is_said_in_a_program_without_logging_has_our_name(setting, said):
    program = f"{setting}\nimport stepscope\nstepscope.stop()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.startswith(said)


# -- words -------------------------------------------------------------------------------------------------------------


def test_a_path_that_is_not_there_is_a_failure_of_doctor(tmp_path, capsys):
    assert run(["doctor", str(tmp_path / "nothing")]) == 1
    assert "there is no such file or folder" in capsys.readouterr().err
    assert run(["doctor", str(tmp_path)]) == 0


def test_the_manual_page_has_every_command_and_option(capsys):
    assert run(["man"]) == 0
    page = capsys.readouterr().out

    assert page.startswith(".TH STEPSCOPE 1 ")
    assert set(re.findall(r"^\.SS stepscope (\S+)", page, re.MULTILINE)) == set(all_names())
    assert r"\fB\-\-fail\-above\fR \fIPERCENT\fR" in page
    assert "How many steps to capture;" in page
    assert not re.search(r"default: [^)]*\)\. Default:", page)
    assert not re.search(r"^[.'](?!TH |SH |SS |TP|B )", page, re.MULTILINE)
    if shutil.which("man"):
        shown = subprocess.run(["man", "-l", "-"], input=page, capture_output=True, text=True, check=True)
        assert "stepscope summary" in shown.stdout


def test_every_variable_of_the_environment_is_documented():
    used = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"\bSTEPSCOPE_[A-Z_]*[A-Z]\b", path.read_text())
    } - {
        "STEPSCOPE_COMPLETE",
        "STEPSCOPE_FOLLOW",
        "STEPSCOPE_PROVE",
        "STEPSCOPE_CHILD_MEMORY",
    }  # between our own processes
    page = (ROOT / "docs" / "command-line.md").read_text()

    assert {name for name in used if name not in page} == set()


# -- run -----------------------------------------------------------------------------------------------------------


def test_a_script_that_fails_at_once_is_given_no_advice(tmp_path):
    (tmp_path / "script.py").write_text("import no_such_module\n")

    done = run_command(["-m", "stepscope", "run", "script.py"], tmp_path)

    assert done.returncode == 1
    assert "No module named 'no_such_module'" in done.stderr
    assert "verdict" not in done.stderr


# -- object stores ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ("summary PATH", b"verdict "),
        ("steps PATH --format csv", b"step,"),
        ("whatif PATH --remove input --format json", b'{\n  "tool": "whatif"'),
        ("compare PATH PATH", b"Verdict\n"),
        ("sql PATH 'SELECT 1 AS one' --format csv", b"one\n1"),
        ("runs . --format csv", b"run,"),
        ("doctor . --format json", b'{\n  "tool": "doctor"'),
        ("report PATH", b"<!doctype html>"),
        ("trace PATH --format chrome", b"{"),
    ],
)
def test_a_result_goes_to_an_object_store(words, start, profile, capsys):
    fsspec = pytest.importorskip("fsspec")
    address = f"memory://results/{words.split()[0]}"

    assert run([*shlex.split(words.replace("PATH", str(profile))), "--output", address]) == 0, capsys.readouterr().err

    assert fsspec.filesystem("memory").cat(address).startswith(start)


def test_a_result_that_a_store_does_not_take_is_said(profile, capsys):
    assert run(["summary", str(profile), "-o", "nosuchstore://results/x"]) == 1
    assert "could not be copied" in capsys.readouterr().err


def test_a_capture_into_an_object_store_is_reported_with_its_address():
    pytest.importorskip("fsspec")
    told: list[object] = []
    schedule_runner = ScheduleRunner("memory://logs", None, schedule(active=2, repeat=1), on_saved=told.append)
    for _ in range(3):
        schedule_runner.start_step()
        schedule_runner.end_step()
    schedule_runner.finish()
    schedule_runner.wait()

    (address,) = told
    assert str(address).startswith("memory://logs/plugins/profile/")
