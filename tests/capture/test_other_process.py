"""Work in a process of its own, and what becomes of a PyTorch capture if there is none or it fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import other_process_jobs
import pytest

from stepscope import children
from stepscope.capture import other_process, tracers
from stepscope.capture.assemble import assemble_profile
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.orphans import output_of
from stepscope.capture.running import Capture
from stepscope.capture.spool import Spool
from stepscope.capture.tracers import kineto_files
from stepscope.capture.tracers import torch as torch_tracer
from stepscope.capture.tracers.base import Artifact, Collected
from stepscope.capture.tracers.giving_way import ProfilerOwnership
from stepscope.capture.tracers.torch import TorchRecording, TorchTracer
from stepscope.errors import CaptureError
from stepscope.formats.base import require_format
from stepscope.formats.spool import layout

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="what a process inherits is a matter of POSIX systems")

TRACE = json.dumps(
    {
        "schemaVersion": 1,
        "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 5.0},
            {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1, "ts": 9.0, "dur": 9.0},
        ],
    }
)


def work(result, what, patience_s=300.0):
    other_process.run(other_process_jobs.__name__, [str(result), what], patience_s)


@pytest.fixture
def result(tmp_path):
    return tmp_path / "result"


@pytest.fixture
def helper():
    made = other_process.ConverterProcess()
    yield made
    made.close()


@pytest.fixture
def no_hurry(monkeypatch):
    monkeypatch.setattr(children, "DEADLINE", children.Deadline())


# -- the process -------------------------------------------------------------------------------------------------------


def test_the_process_is_a_bare_python_that_captures_nothing(result, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('the site was asked')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("STEPSCOPE_LOGDIR", str(tmp_path / "logs"))
    work(result, "tell")

    told = json.loads(result.read_text())
    assert told.pop("nice") >= 5
    assert told == {"modules": [], "leader": True}


@pytest.mark.parametrize(
    ("what", "patience_s", "error", "says"),
    [
        pytest.param("fall", 300, other_process.FailedError, "ValueError: the third event is no event", id="raises"),
        pytest.param("sleep", 0.5, other_process.FailedError, "it took longer than 0 s", id="hangs"),
        pytest.param(
            "lack", 300, other_process.UnableError, "No module named 'stepscope_has_no_such_module'", id="lacks"
        ),
    ],
)
def test_a_process_that_does_not_get_there_says_why(result, what, patience_s, error, says):
    with pytest.raises(error, match=says):
        work(result, what, patience_s)


def test_a_job_that_was_asked_to_end_waits_no_longer(result, no_hurry):
    children.set_deadline(0.5)

    with pytest.raises(other_process.FailedError, match="it took longer"):
        work(result, "sleep", patience_s=600)


def test_a_program_that_ignores_its_children_hears_of_the_result(result):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        work(result, "tell")
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert result.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="a process that is no child is Linux'")
def test_a_program_does_not_meet_the_process_among_its_children(result):
    program = """
import os, signal, sys
from contextlib import closing
from stepscope.capture import other_process
seen = []
signal.signal(signal.SIGCHLD, lambda *_: seen.append("signal"))
with closing(other_process.ConverterProcess()) as helper:
    helper.run("other_process_jobs", [sys.argv[1], "tell"], 300)
    try:
        seen.append(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        pass
print(seen)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(other_process_jobs.__file__).parent)}
    command = [sys.executable, "-c", program, str(result)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)

    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert result.exists()


@pytest.mark.parametrize(("seconds", "printed"), [(300, b"12"), (0.5, b"")])
def test_what_a_command_prints_until_it_takes_too_long(seconds, printed):
    program = f"import time; time.sleep({0 if printed else 600}); print(1, end='', flush=True); print(2, end='')"

    assert output_of([sys.executable, "-c", program], dict(os.environ), seconds) == printed


def test_what_a_module_prints_is_no_answer(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "noisy_child.py").write_text(
        "print('welcome' * 9)\n"
        "from stepscope.children import Parent\n"
        "def main():\n    parent = Parent()\n    print('hello')\n    parent.send(parent.receive())\n"
    )
    child = children.Child("noisy_child", is_bare=True)
    with closing(child):
        child.start()
        assert child.ask(b"echo") == b"echo"
    child.release()


def test_a_process_whose_answer_is_none_is_ended(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(children, "_END_SECONDS", 0.01)
    (tmp_path / "mad_child.py").write_text(
        "import os, sys\ndef main():\n    os.write(int(sys.argv[1]), bytes(b'no answer' * 9))\n    sys.stdin.read()\n"
    )
    child = children.Child("mad_child", is_bare=True)
    child.start()
    with pytest.raises(children.ChildLostError, match="what it answered is no answer"):
        child.ask(b"echo")
    assert not child.is_running
    child.release()


@pytest.mark.parametrize(
    ("name", "executable"),
    [
        pytest.param("executable", "", id="embedded"),
        pytest.param("executable", None, id="unknown"),
        pytest.param("executable", "/usr/sbin/uwsgi", id="server"),
        pytest.param("executable", "/opt/python-trainer/app", id="app"),
        pytest.param("frozen", True, id="frozen"),
        pytest.param("executable", "/nowhere/bin/python3", id="removed"),
    ],
)
def test_a_program_that_is_no_python_is_not_started_again(result, monkeypatch, name, executable):
    monkeypatch.setattr(sys, name, executable, raising=False)

    with pytest.raises(other_process.UnableError):
        work(result, "tell")


# -- a capture of PyTorch ----------------------------------------------------------------------------------------------


@pytest.fixture
def recording():
    """What PyTorch recorded: an op in step 7."""

    def export(path):
        Path(path).write_text(TRACE)

    made = TorchRecording(SimpleNamespace(export_chrome_trace=export), ProfilerOwnership(lambda: None))
    yield made
    made.close()


@pytest.mark.parametrize("content", [None, "", TRACE[: len(TRACE) // 2]], ids=["no file", "empty", "half"])
def test_a_trace_that_pytorch_could_not_write_is_not_said_to_be_kept(content, monkeypatch, helper):
    """With a full temporary folder PyTorch reports nothing."""

    def export(path):
        if content is not None:
            Path(path).write_text(content)

    def fail(*_):
        raise OSError("the conversion failed")

    monkeypatch.setattr(torch_tracer, "_convert", fail)
    made = TorchRecording(SimpleNamespace(export_chrome_trace=export), ProfilerOwnership(lambda: None))
    with pytest.raises(CaptureError, match=r"could not write its trace .* set TMPDIR"):
        made.collect("vm", helper)
    made.close()


def test_what_the_framework_could_not_store_is_missing_in_the_profile_and_said(tmp_path, helper):
    """Not: a complete profile of a program that was busy with Python alone."""
    host = Path(tmp_path) / "vm.xplane.pb"
    error = CaptureError("no space left on device", code="temporary-folder")
    spool = Spool(None, layout.session("vm", "pytorch", 0, 10**18))

    collected = assemble_profile(spool, 0, Collected((), error), "vm", helper)
    made = collected.artifacts[0].content  # a file where a process of many threads had it made by another
    host.write_bytes(made.read_bytes() if isinstance(made, Path) else made)
    trace = require_format("xplane.pb", "").read(host.read_bytes(), "vm.xplane.pb", "vm")

    spool.remove()
    assert collected.error is error
    assert trace.partial
    assert [problem.code for problem in trace.problems] == ["framework-lost"]
    assert "the framework's part of this profile is missing" in trace.recorder_messages[0]


def op_names(artifact):
    trace = require_format(artifact.suffix, "").read(artifact.content.read_bytes(), artifact.suffix, "vm")
    return sorted(trace.name_of(row) for row in range(len(trace.events)))


@pytest.mark.parametrize("frozen", [False, True], ids=["aside", "here"])
def test_both_files_come_from_another_process_or_from_this_one(recording, helper, monkeypatch, frozen):
    done_here = []
    convert = kineto_files.convert
    monkeypatch.setattr(kineto_files, "convert", lambda *words: (done_here.append(words), convert(*words)))
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    collected = recording.collect("vm", helper)

    assert collected.error is None
    assert [artifact.suffix for artifact in collected.artifacts] == ["xplane.pb", "pt.trace.json.gz"]
    assert [op_names(artifact) for artifact in collected.artifacts] == [["ProfilerStep#7", "aten::mm"]] * 2
    assert bool(done_here) == frozen


@pytest.mark.parametrize(
    ("stopping_s", "writing_s", "told"),
    [(0.02, 0.01, None), (0.4, 0.5, None), (3.8, 2.2, "held the program up for 6.0 s")],
    ids=["short", "just short", "long"],
)
def test_a_profile_tells_how_long_pytorch_held_the_program_up(monkeypatch, helper, stopping_s, writing_s, told):
    readings = iter([10.0, 10.0 + stopping_s, 20.0, 20.0 + writing_s])
    monkeypatch.setattr(torch_tracer, "monotonic", lambda: next(readings))
    monkeypatch.setattr(torch_tracer, "_convert", lambda *_: None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    tracer = TorchTracer()
    tracer._native = SimpleNamespace(stop=lambda: None, export_chrome_trace=lambda path: Path(path).write_text("{}"))
    recording = tracer.stop()
    notes = recording.collect("vm", helper).notes
    recording.close()

    assert len(notes) == (told is not None)
    assert told is None or told in notes[0]


def test_a_profiler_that_is_muted_overlooks_operations_until_it_is_stopped(helper):
    torch = pytest.importorskip("torch")
    tracer = TorchTracer()
    tracer.start(ProfilerOptions(python_tracer_level=0))
    torch.ones(2) + 1
    tracer.mute()
    torch.ones(2) * 1
    recording = tracer.stop()
    names = op_names(recording.collect("vm", helper).artifacts[1])
    recording.close()

    assert "aten::add" in names
    assert "aten::mul" not in names


@pytest.mark.parametrize("fails", ["add_metadata_json", "own"])
def test_a_capture_that_cannot_start_leaves_no_profiler_running(fails, tmp_path, monkeypatch):
    """Whether it fails in PyTorch's start or after it, and though ending our own tracers fails, too."""
    torch = pytest.importorskip("torch")

    def fail(*_):
        raise LookupError("no clock")

    if fails == "own":
        monkeypatch.setattr(Capture, "_start_own", fail)
        monkeypatch.setattr(Capture, "end", fail)
    else:
        monkeypatch.setattr(torch.profiler.profile, fails, fail)
    entry = tracers.TracerEntry("torch", "stepscope.capture.tracers.torch:TorchTracer")
    capture = Capture(entry, None, ProfilerOptions())
    with pytest.raises(LookupError):
        capture.start(lambda _: None)

    assert not TorchTracer.is_listening()


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "as it was"])
def test_what_pytorch_wrote_is_kept_if_it_cannot_be_converted(recording, helper, monkeypatch, packed):
    def fail(module, words, patience_s):
        if packed:
            kineto_files.pack(helper.folder / "trace.json")
        raise other_process.FailedError("it took too long")

    monkeypatch.setattr(helper, "run", fail)
    collected = recording.collect("vm", helper)

    (kept,) = collected.artifacts  # with a stamp, so that it is found beside a profile of Stepscope's own tracers
    assert re.fullmatch(r"\d+\.pt\.trace\.json" + (r"\.gz" if packed else ""), kept.suffix)
    assert op_names(kept) == ["ProfilerStep#7", "aten::mm"]
    assert "could not be converted: it took too long" in str(collected.error)


def test_the_last_mark_of_a_step_that_was_open_at_the_end_is_no_step(tmp_path):
    rows = (
        ("user_annotation", "ProfilerStep#0", 1, 10.0),
        ("gpu_user_annotation", "ProfilerStep#0", 7, 15.0),
        ("user_annotation", "ProfilerStep#1", 1, 20.0),
        ("user_annotation", "ProfilerStep#0", 1, 30.0),  # of the next epoch, open
        ("gpu_user_annotation", "ProfilerStep#0", 7, 35.0),
        ("cpu_op", "aten::mm", 1, 31.0),
    )
    events = [
        {"ph": "X", "cat": category, "name": name, "pid": thread, "tid": thread, "ts": at, "dur": 5.0}
        for category, name, thread, at in rows
    ]
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))

    kineto_files.main([str(trace), "vm", "ProfilerStep#0"])

    profile = Artifact("xplane.pb", kineto_files.profile_path(trace))
    assert op_names(profile) == ["ProfilerStep#0", "ProfilerStep#0", "ProfilerStep#1", "aten::mm"]


def test_its_temporary_files_go_with_it(recording, helper):
    kept = recording.collect("vm", helper).artifacts[0].content
    helper.close()

    assert not kept.parent.exists()
