"""What may happen to a training job while it is profiled, and what is left then.  Each job is a process of its own."""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest
from warm_python import WARM, WarmProcess

from stepscope import load
from stepscope.doctor import examine_logdir
from stepscope.formats.base import require_format
from stepscope.model import EventKind, HostTrace

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no POSIX signals to test with")

Job = subprocess.Popen[str] | WarmProcess

TIMEOUT_S = 600  # of a machine that does other things as well
FRAMEWORKS = ["plain", "tensorflow", "jax", "torch"]

PRELUDE = """
import os, sys, threading, time, signal
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
from stepscope import capture as profiler
from stepscope.capture import files, program_end
from stepscope.capture.recorder import RECORDER
files.host_name = lambda: "vm"
program_end._CONVERSION_PATIENCE_S = program_end._SIGTERM_PATIENCE_S = 120  # no launcher waits here
program_end._HARD_END_PATIENCE_S = 120
logdir = sys.argv[1]

def wait_until_flushed():  # by a flush that begins after this call
    now, capture = time.perf_counter_ns(), RECORDER.recording
    while capture._flushed_ns < now: time.sleep(0.01)
    with capture._flush_lock: pass
"""

# One training step of each framework, as `train()`.
STEP = {
    "plain": "def train(): sum(range(1000))",
    "tensorflow": """
import tensorflow as tf
weights = tf.Variable(tf.ones((32, 32)))
def train(): weights.assign(tf.tanh(weights @ weights)).numpy()
""",
    "jax": """
import jax, jax.numpy as jnp
step_of = jax.jit(lambda x: jnp.tanh(x @ x))
weights = jnp.ones((32, 32))
def train(): step_of(weights).block_until_ready()
""",
    "torch": """
import torch
weights = torch.ones(32, 32, requires_grad=True)
def train(): torch.tanh(weights @ weights).sum().backward()
""",
}
FIVE_STEPS = """
train()
profiler.start(logdir)
for i in range(5):
    with profiler.step(i): train()
"""


def job(framework: str, script: str, logdir: Path, **environment: str) -> Job:
    """Starts a job that trains with a framework."""
    program, variables = PRELUDE + STEP[framework] + "\n" + script, os.environ | environment
    if framework == "plain":
        command = [sys.executable, "-c", program, str(logdir)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)
    return WARM.start(framework, ["-c", program, str(logdir)], variables)


def run(framework: str, script: str, logdir: Path, **environment: str) -> tuple[int, str, str]:
    """Runs a job to its end: exit status, what it printed, what it complained of."""
    return ended(job(framework, script, logdir, **environment))


def ended(process: Job) -> tuple[int, str, str]:
    """Waits for a job: exit status, what it printed, what it complained of."""
    said, complaints = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, said, complaints


def wait_for(process: Job, line: str) -> None:
    """Waits until a job has printed a line."""
    assert process.stdout is not None
    for said in process.stdout:
        if said.strip() == line:
            return
    raise AssertionError(process.stderr.read() if process.stderr else "the job ended")


def profiles(logdir: Path) -> list[str]:
    return sorted(path.name for path in logdir.glob("plugins/profile/*/*"))


def the_profile(logdir: Path, name: str = "vm.xplane.pb") -> HostTrace:
    (path,) = logdir.glob(f"plugins/profile/*/{name}")
    return require_format(path.name, str(path)).read(path.read_bytes(), str(path), "vm")


def steps_in(trace: HostTrace) -> list[int]:
    rows = np.flatnonzero(trace.events.kind == EventKind.STEP_MARK)
    return trace.stat_ints(["step_num"])[rows].tolist()


@pytest.fixture
def logdir(tmp_path) -> Path:
    return tmp_path / "logs"


# -- the end of the job ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_job_that_ends_without_stop_leaves_its_profile_and_its_exit_status(framework, logdir):
    status, _, complaints = run(framework, FIVE_STEPS + "sys.exit(3)", logdir)

    assert status == 3, complaints
    assert steps_in(the_profile(logdir)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_sigterm_ends_the_job_as_ever_and_leaves_the_profile(framework, logdir):
    script = FIVE_STEPS + "print('trained', flush=True)\nfor _ in range(600): time.sleep(0.1)"
    process = job(framework, script, logdir)
    wait_for(process, "trained")
    process.send_signal(signal.SIGTERM)
    _, complaints = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == -signal.SIGTERM, complaints
    assert steps_in(the_profile(logdir)) == [0, 1, 2, 3, 4]


def test_a_job_with_an_answer_to_sigterm_keeps_it(logdir):
    script = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
profiler.start(logdir)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(10)
"""
    status, _, complaints = run("plain", script, logdir)

    assert status == 5, complaints
    assert profiles(logdir) == ["vm.xplane.pb"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_kill_9_leaves_what_was_flushed(framework, logdir):
    script = FIVE_STEPS + "wait_until_flushed()\nprint('flushed', flush=True)\ntime.sleep(600)"
    process = job(framework, script, logdir)
    wait_for(process, "flushed")
    process.kill()
    process.communicate(timeout=TIMEOUT_S)

    assert profiles(logdir) == ["vm.xplane.pb.partial"]
    trace = the_profile(logdir, "vm.xplane.pb.partial")
    assert steps_in(trace) == [0, 1, 2, 3, 4]
    assert trace.partial
    # Steps of some 20 us differ by as much, so the last one may be too short to count as a usual step.
    report = load(logdir).steps()
    assert [row["step"] for row in report.to_dict()["rows"]] == [0, 1, 2, 3, 4]
    assert any("has not ended" in warning for warning in report.warnings)


@pytest.mark.parametrize("framework", ["plain", "torch"])
def test_what_is_being_written_survives_an_end_by_os_exit(framework, logdir):
    status, _, complaints = run(framework, FIVE_STEPS + "profiler.stop(wait=False)\nos._exit(3)", logdir)

    assert status == 3, complaints
    assert steps_in(the_profile(logdir)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("end", ["os._exit(0)", "os.execlp(sys.executable, 'python', '-c', '')"])
def test_a_capture_without_a_framework_is_saved_at_an_end_that_python_does_not_see(end, logdir):
    status, _, complaints = run("plain", FIVE_STEPS + end, logdir)

    assert status == 0, complaints
    assert steps_in(the_profile(logdir)) == [0, 1, 2, 3, 4]


def test_an_end_by_os_exit_waits_for_no_device_and_keeps_what_stepscope_recorded(logdir):
    status, _, complaints = run("torch", FIVE_STEPS + "os._exit(3)", logdir)

    assert status == 3, complaints
    assert steps_in(the_profile(logdir, "vm.xplane.pb.partial")) == [0, 1, 2, 3, 4]
    (warning,) = [text for text in load(logdir).overview().warnings if "[unfinished]" in text]
    assert "the program ended with os._exit during the capture" in warning
    checks = examine_logdir(str(logdir)).checks
    assert [check.found for check in checks if "empty" in check.found or "not recorded" in check.found] == []


def test_kill_9_while_the_profile_is_written_leaves_what_was_flushed_and_no_half_profile(logdir):
    script = """
def slow(path, content): path.write_bytes(content[:100]); print("writing", flush=True); time.sleep(600)
files._fill = slow
profiler.start(logdir)
with profiler.step(7): train()
profiler.stop()
"""
    process = job("plain", script, logdir)
    wait_for(process, "writing")
    process.kill()
    process.communicate(timeout=TIMEOUT_S)

    assert [name for name in profiles(logdir) if not name.startswith(".")] == ["vm.xplane.pb.partial"]
    assert load(logdir).hosts == ("vm",)
    assert steps_in(the_profile(logdir, "vm.xplane.pb.partial")) == [7]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_misuse_and_no_control_c_costs_the_job_anything(framework, logdir):
    script = """
train()
said = []
def tell(): said.append(profiler.last_error() and profiler.last_error().problem.code)

profiler.stop(); tell()  # without a start

mine = ValueError("mine")
try:
    with profiler.Profile(logdir + "/raised"), profiler.step(1):
        train()
        raise mine
except ValueError as error:
    said.append(error is mine and error.__context__ is None)

with profiler.Profile(logdir + "/outer"):
    with profiler.Profile(logdir + "/nested"): train()
    tell()
    profiler.start(logdir + "/second"); tell()
    with profiler.step(2): train()
    child = os.fork()
    if child == 0:
        with profiler.annotate("child"): pass
        os._exit(7)  # as multiprocessing does; JAX and a recording PyTorch do not survive more, whoever records
    said.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

profiler.start(logdir)
print(said)
for i in range(10, 13):
    with profiler.step(i): train()
print("trained", flush=True)
while True: time.sleep(0.1)
"""
    process = job(framework, script, logdir)
    assert process.stdout is not None
    said = next(line for line in process.stdout if line.startswith("["))
    wait_for(process, "trained")
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=TIMEOUT_S)

    assert said.strip() == "['not-running', True, 'already-running', 'already-running', 7]", complaints
    assert process.returncode == -signal.SIGINT, complaints
    assert "KeyboardInterrupt" in complaints
    assert steps_in(the_profile(logdir)) == [10, 11, 12]
    assert steps_in(the_profile(logdir / "raised")) == [1]
    assert steps_in(the_profile(logdir / "outer")) == [2]
    assert sorted(path.name for path in logdir.iterdir()) == ["outer", "plugins", "raised"]


def test_after_control_c_a_job_ends_by_it_whatever_saving_imports(logdir):
    script = """
import atexit
profiler.start(logdir)
atexit.register(exec, "1")  # as `namedtuple` does in a module that is imported at the end
print("trained", flush=True)
while True: time.sleep(0.1)
"""
    process = job("plain", script, logdir)
    wait_for(process, "trained")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == -signal.SIGINT


def test_sigterm_waits_for_a_profile_that_is_being_written(logdir):
    script = """
fill = files._fill
def slow(*arguments): print("writing", flush=True); time.sleep(1); fill(*arguments)
files._fill = slow
profiler.start(logdir)
with profiler.step(7): train()
profiler.stop(wait=False)
time.sleep(600)
"""
    process = job("plain", script, logdir)
    wait_for(process, "writing")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == -signal.SIGTERM
    assert steps_in(the_profile(logdir)) == [7]


def test_sigterm_waits_for_a_profile_that_the_main_thread_is_writing(logdir):
    """A signal handler runs on the main thread, above the very call that it would have to wait for."""
    script = """
fill = files._fill
def slow(*arguments): os.kill(os.getpid(), signal.SIGTERM); print("writing", flush=True); fill(*arguments)
files._fill = slow
profiler.start(logdir)
with profiler.step(7): train()
profiler.stop()
print("stopped", flush=True)
"""
    status, said, complaints = run("plain", script, logdir)

    assert (status, said) == (-signal.SIGTERM, "writing\n"), complaints
    assert steps_in(the_profile(logdir)) == [7]
    assert not list(logdir.rglob("*.partial"))


SLOW_FILL = """
fill = files._fill
def slow(*arguments): print("writing", flush=True); time.sleep(1); fill(*arguments)
files._fill = slow
"""


@pytest.mark.parametrize("framework", ["plain", "torch"])
@pytest.mark.parametrize("background", [False, True], ids=["at the end", "in the background"])
def test_two_control_c_end_the_program_with_its_profile(framework, background, logdir):
    script = f"""{SLOW_FILL}
profiler.start(logdir)
with profiler.step(7): train()
try:
    if {background}: profiler.stop(wait=False)
    else: print("writing", flush=True)
    while True: time.sleep(0.1)
except KeyboardInterrupt:
    pass
"""
    process = job(framework, script, logdir)
    wait_for(process, "writing")
    process.send_signal(signal.SIGINT)
    if not background:
        wait_for(process, "writing")  # the end of the program
    else:
        time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 0, complaints
    assert steps_in(the_profile(logdir)) == [7]
    assert not list(logdir.rglob("*.partial"))


def test_control_c_while_stop_saves_is_heard_after_it_and_the_third_at_once(logdir):
    script = """
def interrupt(*arguments): [os.kill(os.getpid(), signal.SIGINT) for _ in range(times)]; fill(*arguments)
fill, files._fill = files._fill, interrupt
for times in (2, 3):
    profiler.start(f"{logdir}/{times}")
    with profiler.step(times): train()
    try:
        profiler.stop()
    except KeyboardInterrupt:
        print(times, flush=True)
"""
    status, said, complaints = run("plain", script, logdir)

    assert (status, said) == (0, "2\n3\n"), complaints
    assert complaints.count("the profile is being saved") == 2
    assert steps_in(the_profile(logdir / "2")) == [2]
    assert len(list(logdir.rglob("*.partial"))) == 1


def test_control_c_while_a_capture_starts_leaves_nothing_running(logdir):
    script = """
from stepscope.capture.tracers.host import HostTracer
def interrupted(*arguments): raise KeyboardInterrupt
start, HostTracer.start = HostTracer.start, interrupted
try:
    profiler.start(logdir)
except KeyboardInterrupt:
    print(RECORDER.is_running(), os.path.exists(logdir + "/plugins"))
HostTracer.start = start
profiler.start(logdir)
with profiler.step(3): train()
print(profiler.stop() is not None)
"""
    status, said, complaints = run("torch", script, logdir)

    assert (status, said) == (0, "False False\nTrue\n"), complaints
    assert steps_in(the_profile(logdir)) == [3]


# -- profilers of the program's own ------------------------------------------------------------------------------------

OWN_PROFILER = {
    "tensorflow": """
api = tf.profiler.experimental
def own():
    with api.Profile(logdir + "/own"): train()
    api.start(logdir + "/own"); train(); api.stop()
""",
    "jax": """
def own():
    with jax.profiler.trace(logdir + "/own"): train()
    jax.profiler.start_trace(logdir + "/own"); train(); jax.profiler.stop_trace()
""",
    "torch": """
def own():
    with torch.profiler.profile() as theirs: train()
    os.makedirs(logdir + "/own")
    theirs.export_chrome_trace(logdir + "/own/trace.json")
    print(any(event.name == "aten::mm" for event in theirs.events()))
""",
}


@pytest.mark.parametrize("framework", FRAMEWORKS[1:])
def test_a_profiler_of_the_programs_own_works_as_if_nobody_captured(framework, logdir):
    """The frameworks refuse a second one with an exception, and PyTorch crashes when the first is stopped."""
    script = (
        OWN_PROFILER[framework]
        + FIVE_STEPS
        + """
own()
with profiler.step(5): train()
path = profiler.stop()
print(path.name, profiler.last_error().problem.code)
own_again = own if "torch" not in sys.modules else lambda: None
own_again()
profiler.start(logdir + "/after")
with profiler.step(7): train()
print(profiler.stop().name, profiler.last_error())
"""
    )
    status, said, complaints = run(framework, script, logdir)

    assert status == 0, complaints
    assert said.splitlines()[-2:] == ["vm.xplane.pb gave-way", "vm.xplane.pb None"], complaints
    assert "False" not in said
    trace = the_profile(logdir)
    assert steps_in(trace)[:5] == [0, 1, 2, 3, 4]
    assert any("the program started its framework's profiler itself" in told for told in trace.recorder_messages)
    assert steps_in(the_profile(logdir / "after")) == [7]
    assert list(logdir.glob("own/**/*.*"))


def test_a_torch_profiler_that_warms_up_when_a_capture_begins_records_what_it_was_asked_for(logdir):
    script = """
steps = torch.profiler.schedule(wait=0, warmup=2, active=2, repeat=1)
theirs = torch.profiler.profile(schedule=steps)
theirs.start(); train(); theirs.step()
profiler.start(logdir)
with profiler.step(0): train()
for _ in range(3): theirs.step(); train()
theirs.stop()
print(any(event.name == "aten::mm" for event in theirs.events()))
profiler.stop()
print(profiler.last_error().problem.code)
"""
    status, said, complaints = run("torch", script, logdir)

    assert (status, said) == (0, "True\ngave-way\n"), complaints
    assert steps_in(the_profile(logdir)) == [0]


# -- threads and processes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", FRAMEWORKS[1:])
def test_any_thread_may_stop_and_any_thread_may_record(framework, logdir):
    script = (
        FIVE_STEPS
        + """
stopper = threading.Thread(target=profiler.stop)
stopper.start(); stopper.join()
recorded = []
recorder = threading.Thread(target=lambda: recorded.append(RECORDER.record(60_000, stop_event=enough)))
enough = threading.Event()
recorder.start()
while not RECORDER.is_running(): time.sleep(0.01)
for i in range(10, 13):
    with profiler.step(i): train()
enough.set(); recorder.join()
open(logdir + "/recorded", "wb").write(recorded[0].artifacts[0].content)
print(profiler.last_error())
"""
    )
    status, said, complaints = run(framework, script, logdir)

    assert (status, said.splitlines()[-1:]) == (0, ["None"]), complaints
    assert steps_in(the_profile(logdir)) == [0, 1, 2, 3, 4]
    recorded = require_format("vm.xplane.pb", "").read((logdir / "recorded").read_bytes(), "recorded", "vm")
    assert steps_in(recorded) == [10, 11, 12]
    assert any("tanh" in recorded.name_of(row).lower() for row in range(len(recorded.events)))


def test_ranks_of_one_job_share_a_run_and_have_files_of_their_own(logdir):
    script = "with profiler.Profile(logdir), profiler.step(0): train()\n" * 2
    jobs = [
        job("plain", script, logdir, RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="head", MASTER_PORT="29500")
        for rank in range(3)
    ]
    assert [ended(process) for process in jobs] == [(0, "", "")] * 3

    runs = sorted((logdir / "plugins" / "profile").iterdir())
    names = [f"vm_rank{rank}.xplane.pb" for rank in range(3)]
    assert [sorted(path.name for path in folder.iterdir()) for folder in runs] == [names, names]
    assert load(logdir).hosts == ("vm_rank0", "vm_rank1", "vm_rank2")


def test_what_an_old_job_left_is_removed_by_the_next_one(logdir):
    old, young = (logdir / "plugins" / ".stepscope" / name for name in ("old", "young"))
    for folder in (old, young):
        (folder / "0").mkdir(parents=True)
        (folder / "0" / "rank0").touch()
    os.utime(old, (0, 0))
    script = "with profiler.Profile(logdir), profiler.step(0): train()"
    assert run("plain", script, logdir, RANK="0", WORLD_SIZE="2", MASTER_ADDR="head", MASTER_PORT="1") == (0, "", "")

    assert not old.exists()
    left = sorted(folder.name for folder in young.parent.iterdir())
    assert len(left) == 2  # the young one's and this job's own
    assert "young" in left


def test_processes_without_a_rank_that_start_at_once_lose_nothing(logdir):
    script = "with profiler.Profile(logdir), profiler.step(0): train()"
    jobs = [job("plain", script, logdir, STEPSCOPE_RUN="sweep 1") for _ in range(3)]
    assert [ended(process) for process in jobs] == [(0, "", "")] * 3

    found = sorted(logdir.glob("plugins/profile/sweep_1/*"))
    assert len(found) == 3
    assert all(path.name.endswith(".xplane.pb") for path in found)


def test_a_forked_child_of_a_job_that_traces_python_is_not_traced(logdir):
    script = """
with profiler.Profile(logdir, profiler.ProfilerOptions(python_tracer_level=1, stack_samples_hz=100)):
    child = os.fork()
    if child == 0:
        train()
        os._exit(sys.getprofile() is not None)
    status = os.waitpid(child, 0)[1]
print(status, profiler.last_error())
"""
    _, said, complaints = run("plain", script, logdir)

    assert said == "0 None\n", complaints
    assert profiles(logdir) == ["vm.xplane.pb"]


# -- the disk ----------------------------------------------------------------------------------------------------------


def test_a_disk_that_fills_up_keeps_the_job_alive_and_the_profile_tells_what_it_lost(logdir):
    script = """
import resource
from stepscope.capture import running
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writes beyond the limit fail as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
profiler.start(logdir, profiler.ProfilerOptions(system_interval_ms=0, stack_samples_hz=0))
for i in range(100):
    with profiler.step(i): train()
wait_until_flushed()
running.FLUSH_S = 3600  # all of what follows is flushed at once
for i in range(20_000):
    with profiler.annotate("too much"): pass
print(profiler.stop().name)
"""
    status, said, complaints = run("plain", script, logdir)

    assert (status, said) == (0, "vm.xplane.pb\n"), complaints
    assert "No space left on device" in complaints
    trace = the_profile(logdir)
    assert steps_in(trace) == list(range(100))
    (message,) = trace.recorder_messages  # the processor time that was read at the end is lost, too
    assert re.fullmatch(r"20,00\d events of Stepscope's own tracers were lost because the disk was full", message)


def test_a_profile_of_pytorch_tells_that_its_end_held_the_program_up(logdir):
    script = """
from stepscope.capture.tracers import torch as tracer
tracer._LONG_S = 0.0
with profiler.Profile(logdir):
    train()
"""
    status, _, complaints = run("torch", script, logdir)

    assert status == 0, complaints
    (message,) = the_profile(logdir).recorder_messages
    assert re.match(r"ending this capture held the program up for \d+\.\d s", message), message


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_full_disk_costs_the_profile_and_nothing_else(framework, logdir):
    script = (
        FIVE_STEPS
        + """
wait_until_flushed()
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # neither the framework nor we can write more
print("path:", profiler.stop())
train()
print("trained", profiler.last_error().problem.code)
"""
    )
    status, said, complaints = run(framework, script, logdir)

    assert status == 0, complaints
    assert said.splitlines()[-2:] == ["path: None", "trained write-failed"], complaints
    assert profiles(logdir) == ["vm.xplane.pb.partial"]
    assert steps_in(the_profile(logdir, "vm.xplane.pb.partial")) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("framework", ["plain", "torch"])
def test_a_logdir_that_cannot_be_made_costs_the_profile_and_nothing_else(framework, tmp_path):
    (tmp_path / "file").touch()
    script = FIVE_STEPS + "profiler.stop()\nprint('trained', profiler.last_error().problem.code)"
    status, said, complaints = run(framework, script, tmp_path / "file")

    assert (status, said.splitlines()[-1]) == (0, "trained not-running"), complaints
    assert "[logdir]" in complaints


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_capture_that_reaches_its_time_ends_itself_and_says_so(logdir):
    script = """
import logging
from stepscope.capture import running
logging.basicConfig(format="%(message)s")
running._WARN_AT = 0.2  # early, so that a busy machine cannot miss the time between the warning and the end
options = profiler.ProfilerOptions(max_seconds=1)
with profiler.Profile(logdir, options) as profile:
    with profiler.step(0): train()
    while RECORDER.is_running(): time.sleep(0.05)
    with profiler.step(1): train()
print(profile.path.name, profiler.last_error())
"""
    status, said, complaints = run("plain", script, logdir)

    assert (status, said) == (0, "vm.xplane.pb None\n"), complaints
    assert "ends itself after 1 s (max_seconds)" in complaints.splitlines()[0]
    trace = the_profile(logdir)
    assert steps_in(trace) == [0]
    assert trace.recorder_messages == ("the capture ended itself after 1 s (max_seconds)",)


def test_a_capture_that_reaches_its_size_ends_itself_and_keeps_what_it_has(logdir):
    script = """
profiler.start(logdir, profiler.ProfilerOptions(max_bytes=1 << 20))
while RECORDER.is_running():
    for i in range(5000):
        with profiler.annotate("load"): pass
    time.sleep(0.01)
print(profiler.stop().name)
"""
    status, said, complaints = run("plain", script, logdir)

    assert (status, said) == (0, "vm.xplane.pb\n"), complaints
    assert any("max_bytes" in message for message in the_profile(logdir).recorder_messages)


# -- how long the training waits ---------------------------------------------------------------------------------------


def test_stop_in_the_background_returns_before_the_work_is_done(logdir):
    script = """
order = []
fill, done = files._fill, threading.Event()
def waiting(*arguments): done.wait(300); order.append("written"); fill(*arguments)
files._fill = waiting
profiler.start(logdir)
with profiler.step(0): train()
profiler.stop(wait=False)
order.append("training")
with profiler.Profile(logdir + "/second", profiler.ProfilerOptions(strict=True)) as second:
    done.set()
for thread in threading.enumerate():
    if thread.name == "stepscope-export": thread.join()
print(*order[:2])
"""
    status, said, complaints = run("plain", script, logdir)

    assert (status, said) == (0, "training written\n"), complaints
    assert profiles(logdir) == ["vm.xplane.pb"]


@pytest.mark.parametrize("framework", ["plain", "torch"])
def test_what_a_capture_cost_is_in_its_profile(framework, logdir):
    script = """
from stepscope.capture.cost import LENGTHS
noted, own, note = [], [], LENGTHS.note
def listen(length_ns, recording): noted.append((length_ns / 1e6, recording)); note(length_ns, recording)
LENGTHS.note = listen
def steps(count, pause):
    for i in range(count):
        begin = time.perf_counter()
        with profiler.step(i): train(); time.sleep(pause)
        own.append((1e3 * pause, 1e3 * (time.perf_counter() - begin)))
steps(2, 0)  # those that compile are left out
steps(10, 0.05)
with profiler.Profile(logdir): steps(10, 0.1)
print(noted, own, sep=chr(10))
"""
    status, said, complaints = run(framework, script, logdir)

    assert status == 0, complaints
    noted, own = map(literal_eval, said.splitlines()[-2:])
    assert [recording for _, recording in noted] == [False] * 12 + [True] * 10
    assert all(least <= ms <= most for (ms, _), (least, most) in zip(noted, own, strict=True))
    before, inside = (statistics.median(ms for ms, _ in steps) for steps in (noted[2:12], noted[12:]))
    cost = load(logdir).overview().to_dict()["profiling_cost_percent"]
    assert cost == pytest.approx(100 * (inside / before - 1), abs=0.1)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_step_thread_stops_pytorchs_profiler_only_and_neither_converts_nor_writes(framework, logdir):
    script = """
from stepscope.capture import own_threads, running
workers = {}
def watched(owner, name):
    work = getattr(owner, name)
    def watching(*words, **named):
        workers[name] = own_threads.name_of_this_thread()
        return work(*words, **named)
    setattr(owner, name, watching)
watched(running.Capture, "take"); watched(running.Capture, "collect"); watched(files, "_store"); watched(os, "fsync")
train()
before = set(sys.modules)
profiler.start(logdir)
for i in range(3):
    with profiler.step(i): train()
profiler.stop(wait=False)
own_threads.await_files(100)
assert threading.enumerate() == [threading.main_thread()]
print(sorted(workers.items()))
heavy = ("pyarrow", "msgspec", "torch._inductor", "torch._dynamo")
print([name for name in heavy if name in set(sys.modules) - before])
"""
    status, said, complaints = run(framework, script, logdir)

    assert status == 0, complaints
    workers, loaded = said.splitlines()[-2:]
    stops = "MainThread" if framework == "torch" else "stepscope-export"
    jobs = [(job, "stepscope-export") for job in ("_store", "collect", "fsync")]
    assert workers == str([*jobs, ("take", stops)]), complaints
    assert loaded == "[]", "these take seconds to import or to compile, and the program waits meanwhile"
    assert steps_in(the_profile(logdir)) == [0, 1, 2]
