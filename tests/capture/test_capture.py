"""Captures with Stepscope's own tracer, and everything that may go wrong around one."""

from __future__ import annotations

import asyncio
import errno
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest
from waiting import await_until

from stepscope import capture as profiler
from stepscope import load
from stepscope.capture import cost, files, report, running, tracers
from stepscope.capture.own_threads import own_threads
from stepscope.capture.recorder import RECORDER
from stepscope.capture.spool import Spool
from stepscope.capture.steps.finding import FINDING
from stepscope.capture.steps.step_loop import OPTIMIZED, StepSource
from stepscope.capture.tracers import ranges
from stepscope.capture.tracers.base import Artifact, Collected
from stepscope.errors import CaptureError
from stepscope.formats.xspace.reader import read
from stepscope.kernels import calls
from stepscope.model import EventKind, HostTrace, PlaneKind


@pytest.fixture(autouse=True)
def own_tracer(monkeypatch, tmp_path_factory):
    """Annotations alone, whatever is imported; no capture, hook, thread or temporary file outlives the test."""
    monkeypatch.setenv("STEPSCOPE_TRACER", "host")
    monkeypatch.setattr(tracers, "PROBES", ())
    monkeypatch.setattr(files, "host_name", lambda: "vm")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
    report.forget()
    threads = running_threads()
    yield
    left = RECORDER.recording
    if left is not None:
        RECORDER.end_capture(left, save=False)  # the tests after this one are not to blame
    assert left is None
    assert ranges.ROUTE.opener is None
    await_until(lambda: running_threads() <= threads, 60, "the end of threads whose work is done")
    assert sys.getprofile() is None
    assert list(Path(tempfile.gettempdir()).iterdir()) == []


def running_threads() -> set[int | None]:
    """Python's numbers of all threads, also of those that a program does not see."""
    return {thread.ident for thread in threading.enumerate()} | set(own_threads())


@pytest.fixture
def logdir(tmp_path) -> Path:
    return tmp_path / "logs"


PROFILE = b'"\x04fake'
"""An XSpace of a host's name and nothing else."""


class FakeTracer:
    """A tracer that does what `on_start` and `on_stop` do, and records the names it is given."""

    one_thread = stops_where_asked = False
    heard: list[str] = []  # noqa: RUF012 - emptied by the fixture
    on_start = on_stop = staticmethod(lambda: None)
    artifacts = (Artifact("xplane.pb", PROFILE), Artifact("json", b"{}"))
    error = None
    heeds = False

    is_in_use = staticmethod(lambda: False)
    is_listening = classmethod(lambda cls: cls.heeds)

    def start(self, options):
        self.on_start()

    def stop(self):
        self.on_stop()
        return SimpleNamespace(collect=lambda host, helper: Collected(self.artifacts, self.error), close=lambda: None)

    discard = stop

    def annotate(self, name, metadata):
        self.heard.append(name)
        return SimpleNamespace(__enter__=lambda: None, __exit__=lambda *_: None, set_metadata=lambda **_: None)


@pytest.fixture
def fake(monkeypatch) -> type[FakeTracer]:
    """Stands for a framework and its profiler."""
    entry = tracers.TracerEntry("fake", f"{__name__}:FakeTracer")
    monkeypatch.setattr(tracers, "REGISTRY", (entry, tracers.REGISTRY[-1]))
    monkeypatch.setitem(sys.modules, "fake", SimpleNamespace(profiler=True))
    monkeypatch.delenv("STEPSCOPE_TRACER")
    for name in ("one_thread", "stops_where_asked", "on_start", "on_stop", "artifacts", "error", "heeds", "annotate"):
        monkeypatch.setattr(FakeTracer, name, FakeTracer.__dict__[name])
    monkeypatch.setattr(FakeTracer, "heard", [])
    return FakeTracer


def trace_of(path: Path | None) -> HostTrace:
    assert path is not None, profiler.last_error()
    return read(path.read_bytes(), str(path), "vm")


def names(path: Path | None) -> list[str]:
    """The names of all events but those that are sampled, or counted."""
    trace = trace_of(path)
    measured = ~np.isin(trace.events.kind, (EventKind.COUNTER, EventKind.PYTHON_CALL))
    measured &= trace.planes.kind[trace.lines.plane[trace.events.line]] != PlaneKind.CUSTOM_DEVICE
    return [trace.name_of(row) for row in np.flatnonzero(measured)]


def profiles(logdir: Path) -> list[Path]:
    return sorted(logdir.glob("plugins/profile/*/*"))


def last_code() -> str | None:
    error = profiler.last_error()
    return error and error.problem.code


def raises(error: BaseException):
    def function(*_: object, **__: object) -> None:
        raise error

    return staticmethod(function)


# -- where the file goes ---------------------------------------------------------------------------------------------


def test_start_and_stop_leave_one_file_where_tensorboard_looks(logdir):
    profiler.start(logdir)
    with profiler.Trace("train", step_num=3, _r=1):
        pass
    path = profiler.stop()

    assert profiles(logdir) == [path]
    # A second capture of this process in one second would have a number of its own.
    assert re.fullmatch(r"plugins/profile/\d{4}(_\d\d){5}(_\d+)?/vm\.xplane\.pb", str(path.relative_to(logdir)))
    assert names(path) == ["train"]


def test_a_capture_that_is_not_to_be_saved_leaves_no_file(logdir):
    profiler.start(logdir)

    assert profiler.stop(save=False) is None
    assert list(logdir.glob("plugins/profile/*")) == []
    assert profiler.last_error() is None


def test_two_captures_in_one_second_are_two_runs(logdir):
    paths = []
    for _ in range(3):
        with profiler.Profile(logdir) as profile:
            pass
        paths.append(profile.path)

    assert paths == profiles(logdir)
    assert len({path.parent for path in paths}) == 3


# -- what must not hurt the training run -----------------------------------------------------------------------------


def test_a_profile_nested_in_itself_ends_with_the_outer_block(logdir):
    profile = profiler.Profile(logdir)
    with profile:
        with profile:
            pass
        with profiler.annotate("after the inner block"):
            pass

    assert not RECORDER.is_running()
    assert names(profile.path) == ["after the inner block"]


def test_stop_inside_a_profile_ends_it(logdir):
    with profiler.Profile(logdir) as profile:
        path = profiler.stop()

    assert profile.path is None
    assert profiles(logdir) == [path]
    assert profiler.last_error() is None


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_the_users_exception_leaves_unchanged_and_the_profile_is_saved(logdir, error):
    profile = profiler.Profile(logdir)
    with pytest.raises(type(error)) as caught, profile:
        with profiler.annotate("before"):
            pass
        raise error

    assert caught.value is error
    assert error.__context__ is None
    assert names(profile.path) == ["before"]


def test_control_c_in_a_recording_that_is_taken_in_memory_leaves_nothing_running(fake, logdir):
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RECORDER.record(1000, stop_event=Interrupted())

    assert not RECORDER.is_running()
    profiler.start(logdir)
    assert (profiler.last_error(), profiler.stop() is not None) == (None, True)


def test_a_recording_may_be_asked_for_without_an_end(logdir):
    enough = threading.Event()
    enough.set()

    assert RECORDER.record(2**64 - 1, stop_event=enough).error is None


@pytest.mark.parametrize("logdir", [None, "", 7, ["logs"]], ids=["None", "empty", "number", "list"])
def test_what_names_no_folder_is_reported_and_nothing_runs(logdir):
    profiler.start(logdir)

    assert (last_code(), RECORDER.is_running()) == ("logdir", False)
    assert f"{logdir!r} is not a folder" in str(profiler.last_error())


def test_the_home_is_where_load_looks_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with profiler.Profile("~/logs") as profile:
        pass

    assert profile.path is not None and profile.path.is_relative_to(tmp_path / "logs")
    assert load("~/logs").hosts == ("vm",)


def test_a_read_only_logdir_is_reported_when_the_capture_starts(logdir, monkeypatch):
    monkeypatch.setattr(Path, "touch", raises(OSError(errno.EROFS, "Read-only file system")))
    profiler.start(logdir)

    assert last_code() == "logdir"
    assert "Read-only file system" in str(profiler.last_error())


def test_a_remote_logdir_that_refuses_leaves_the_profile_here(tmp_path):
    profile = profiler.Profile("nosuch://bucket/logs")
    with profile, profiler.step(0):
        pass

    problem = profiler.last_error().problem
    assert (problem.code, profile.path, profile.url) == ("upload", None, None)
    (kept,) = Path(problem.kept.removeprefix("the files in ")).iterdir()
    assert names(kept) == ["train"]
    shutil.rmtree(kept.parent)


def test_a_disk_that_is_full_when_the_capture_starts_is_told_then_and_nothing_is_left(logdir, monkeypatch):
    monkeypatch.setattr(Spool, "_write", raises(OSError(errno.ENOSPC, "No space left on device")))
    profiler.start(logdir)

    assert (last_code(), RECORDER.is_running()) == ("logdir", False)
    assert "nothing can be written here: No space left on device" in str(profiler.last_error())
    assert profiles(logdir) == []


def test_a_logdir_that_goes_away_meanwhile_is_made_again(logdir):
    profiler.start(logdir)
    (run,) = logdir.glob("plugins/profile/*")
    shutil.rmtree(run)

    assert profiler.stop() == run / "vm.xplane.pb"


def test_a_profiler_that_does_not_start_is_reported(fake, logdir):
    fake.on_start = raises(RuntimeError("no CUPTI"))
    profiler.start(logdir)

    assert "no CUPTI" in str(profiler.last_error())
    assert list(logdir.glob("plugins/profile/*")) == []


def test_a_profiler_that_does_not_stop_is_reported_and_what_stepscope_recorded_is_saved(fake, logdir):
    fake.on_stop = raises(RuntimeError("lost the device"))
    profiler.start(logdir)
    with profiler.annotate("load"):
        pass

    assert names(profiler.stop()) == ["load"]
    assert "stopping the fake profiler failed: RuntimeError: lost the device" in str(profiler.last_error())
    fake.on_stop = staticmethod(lambda: None)
    with profiler.Profile(logdir) as again:
        pass
    assert again.path.read_bytes().startswith(PROFILE)
    assert profiler.last_error() is None


def test_a_file_that_could_not_be_made_is_reported_beside_what_could(fake, logdir):
    fake.error = CaptureError("conversion failed", code="half")
    with profiler.Profile(logdir) as profile:
        pass

    assert profile.path.name == "vm.xplane.pb"
    assert last_code() == "half"


def test_a_tracer_that_fails_in_the_midst_costs_no_other_its_events(logdir, monkeypatch):
    calls = ("start", "stop", "abandon")
    broken = SimpleNamespace(waiting_bytes=lambda: 0, drain=lambda: 1 // 0, cost_ms=0.0)
    vars(broken).update(dict.fromkeys(calls, lambda *_: None))
    entry = SimpleNamespace(what="a device", wanted=lambda *_: True, make=lambda: broken)
    monkeypatch.setattr(tracers, "PROBES", (entry,))
    with profiler.Profile(logdir) as profile, profiler.annotate("load"):
        pass

    assert names(profile.path) == ["load"]
    assert "flushing SimpleNamespace failed: ZeroDivisionError" in str(profiler.last_error())


def test_a_second_file_that_cannot_be_stored_does_not_lose_the_first(fake, logdir):
    fake.artifacts = (Artifact("xplane.pb", PROFILE), Artifact("json", Path("gone")))
    with profiler.Profile(logdir) as profile:
        pass

    assert profiles(logdir) == [profile.path]
    assert "lost: the capture as json" in str(profiler.last_error())


def test_a_profiler_bound_to_its_thread_is_stopped_there_only(fake, logdir):
    fake.one_thread = True
    profiler.start(logdir)
    stopped = []
    thread = threading.Thread(target=lambda: stopped.append(profiler.stop()))
    thread.start()
    thread.join()

    assert stopped == [None]
    assert last_code() == "wrong-thread"
    assert [path.name for path in profiles(logdir)] == ["vm.xplane.pb.partial"]
    assert profiler.stop() is not None


def test_a_profiler_bound_to_its_thread_is_stopped_there_and_written_elsewhere(fake, logdir):
    fake.one_thread = True
    stopped_on = []
    fake.on_stop = staticmethod(lambda: stopped_on.append(threading.current_thread().name))
    profiler.start(logdir)
    profiler.stop(wait=False)
    assert stopped_on == [threading.current_thread().name]
    await_until(lambda: "vm.xplane.pb" in [path.name for path in profiles(logdir)], 60, "the profile")


def test_a_profiler_that_operations_must_not_run_beside_is_stopped_by_the_thread_that_ends_it(fake, logdir):
    fake.stops_where_asked = True
    stopped_on = []
    fake.on_stop = staticmethod(lambda: stopped_on.append(threading.get_ident()))
    profiler.start(logdir)
    profiler.stop(wait=False)

    assert stopped_on == [threading.get_ident()]


@pytest.mark.parametrize(("computes", "stops_on"), [(True, "main"), (False, "recorder")])
def test_a_recording_of_another_thread_is_stopped_between_instructions_of_the_main_thread(
    fake, monkeypatch, computes, stops_on
):
    monkeypatch.setattr(running, "_STOP_PATIENCE_S", 60.0 if computes else 0.01)
    fake.stops_where_asked = True
    stopped_on = []
    fake.on_stop = staticmethod(lambda: stopped_on.append(threading.get_ident()))
    # The main thread has to be in `join`, also on a busy machine, when it is to be waited for in vain.
    recorder = threading.Thread(target=lambda: RECORDER.record(1 if computes else 1000))
    recorder.start()
    while computes and recorder.is_alive():
        pass
    recorder.join()

    assert stopped_on == [threading.main_thread().ident if stops_on == "main" else recorder.ident]


def test_a_recording_of_another_thread_is_stopped_by_the_thread_of_the_steps(fake, monkeypatch):
    """The main thread waits for that which trains, and comes to no pending call."""
    monkeypatch.setattr(calls, "call_on_main_thread", lambda call: True)
    monkeypatch.setattr(running, "_STOP_PATIENCE_S", 60.0)
    fake.stops_where_asked = True
    stopped_on = []
    fake.on_stop = staticmethod(lambda: stopped_on.append(threading.get_ident()))
    recorder = threading.Thread(target=lambda: RECORDER.record(1))

    def train() -> None:
        while recorder.is_alive():
            FINDING.loop.end_step(StepSource(OPTIMIZED, "one per step"))

    trainer = threading.Thread(target=train)
    recorder.start()
    trainer.start()
    trainer.join()

    assert stopped_on == [trainer.ident]
    assert not FINDING.loop.has_listeners


def test_a_profiler_overlooks_operations_before_another_thread_than_theirs_stops_it(fake, monkeypatch):
    """The main thread waits, and nothing has steps."""
    monkeypatch.setattr(calls, "call_on_main_thread", lambda call: True)
    monkeypatch.setattr(running, "_STOP_PATIENCE_S", 0.01)
    fake.stops_where_asked = True
    happened = []
    fake.on_stop = staticmethod(lambda: happened.append("stop"))
    monkeypatch.setattr(fake, "mute", lambda _: happened.append("mute"), raising=False)
    recorder = threading.Thread(target=lambda: RECORDER.record(1))
    recorder.start()
    recorder.join()

    assert happened == ["mute", "stop"]


def test_a_limit_does_not_end_a_profiler_that_is_bound_to_a_thread(fake, logdir, caplog, monkeypatch):
    monkeypatch.setattr(running, "_LOOK_S", 0.01)
    fake.one_thread = True
    profiler.start(logdir, profiler.ProfilerOptions(max_seconds=1))
    await_until(lambda: "only the thread that started it can end it" in caplog.text, 60, "the warning")
    profiler.stop()

    assert caplog.text.count("has reached 1 s (max_seconds)") == 1
    assert "ended itself" not in caplog.text
    assert "vm.xplane.pb" in [path.name for path in profiles(logdir)]


def test_ranges_that_fail_are_reported_once_a_name_and_capture(fake, logdir, caplog):
    fake.annotate = raises(TypeError("bad metadata"))
    for _ in range(2):
        with profiler.Profile(logdir):
            for i in range(3):
                with profiler.Trace("train", step_num=i), profiler.annotate("load"):
                    trained = i

    assert trained == 2
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "[capture] annotating 'train' failed: TypeError: bad metadata",
        "[capture] annotating 'load' failed: TypeError: bad metadata",
    ] * 2


def test_a_name_that_cannot_be_told_does_not_reach_the_program(fake, logdir, caplog):
    class Untellable:
        __hash__ = None

        def __repr__(self) -> str:
            raise KeyError("no")

    fake.annotate = raises(TypeError("a name is a text"))
    with profiler.Profile(logdir), profiler.Trace(["a"]), profiler.Trace(Untellable()):
        pass

    assert [record.getMessage().split(" failed")[0] for record in caplog.records] == [
        "[capture] annotating ['a']",
        "[capture] annotating <Untellable>",
    ]


# -- options ---------------------------------------------------------------------------------------------------------

STRICT = profiler.ProfilerOptions(strict=True)


def test_strict_raises(logdir, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CaptureError, match="nothing can be written here"):
        profiler.start(tmp_path / "file", STRICT)
    profiler.start(logdir, STRICT)
    with pytest.raises(CaptureError, match="already running"):
        profiler.start(logdir, STRICT)
    profiler.stop(save=False)


def test_strict_names_a_foreign_error_as_the_cause(fake, logdir):
    fake.on_stop = raises(RuntimeError("lost the device"))
    with pytest.raises(CaptureError) as caught, profiler.Profile(logdir, STRICT):
        pass

    assert isinstance(caught.value.__cause__, RuntimeError)


def test_strict_does_not_hide_the_users_exception(fake, logdir):
    fake.on_stop = raises(RuntimeError("lost the device"))
    with pytest.raises(ValueError, match="mine"), profiler.Profile(logdir, STRICT):
        raise ValueError("mine")

    assert "lost the device" in str(profiler.last_error())


def test_tensorflows_options_are_taken_as_they_are():
    native = namedtuple("ProfilerOptions", "host_tracer_level python_tracer_level device_tracer_level delay_ms")

    taken = profiler.ProfilerOptions.from_any(native(3, 1, 0, 50))

    assert taken == profiler.ProfilerOptions(3, 1, 0, 50, strict=False)


def test_a_dict_of_options_is_taken_and_what_there_is_not_is_told(caplog):
    taken = profiler.ProfilerOptions.from_any({"host_tracer_level": 1, "strict": True, "host_tracer_levl": 3})

    assert taken == profiler.ProfilerOptions(host_tracer_level=1, strict=True)
    assert "there is no option host_tracer_levl; options: host_tracer_level," in caplog.text


@pytest.mark.parametrize("options", ["detailed", 3, object], ids=["text", "number", "class"])
def test_what_is_no_options_is_told_and_the_defaults_count(options, caplog):
    assert profiler.ProfilerOptions.from_any(options) == profiler.ProfilerOptions()
    assert "has none of the fields of ProfilerOptions; the defaults are used" in caplog.text


@pytest.mark.parametrize("value", [None, "2", float("nan")], ids=["None", "text", "nan"])
def test_an_option_that_is_no_number_is_told_and_costs_no_capture(value, logdir, caplog):
    with profiler.Profile(logdir, {"host_tracer_level": value, "max_seconds": value}) as profile, profiler.step(0):
        pass

    assert names(profile.path) == ["train"]
    assert [record.getMessage() for record in caplog.records] == [
        f"host_tracer_level={value!r} is not a number; 2 is used",
        f"max_seconds={value!r} is not a number; 3600.0 is used",
    ]


def test_levels_out_of_range_are_moved_and_told(caplog):
    moved = profiler.ProfilerOptions(host_tracer_level=9, python_tracer_level=-1).clamp()

    assert moved == profiler.ProfilerOptions(host_tracer_level=3, python_tracer_level=0)
    assert [record.getMessage() for record in caplog.records] == [
        "host_tracer_level=9 is out of range 0 to 3; 3 is used",
        "python_tracer_level=-1 is out of range 0 to 1; 0 is used",
    ]


# -- ranges ----------------------------------------------------------------------------------------------------------


def test_steps_in_blocks_are_marked(logdir):
    with profiler.Profile(logdir) as profile:
        for i in (7, 8):
            with profiler.step(i):
                pass
    trace = trace_of(profile.path)

    assert [(trace.name_of(row), trace.stats_of_event(row)) for row in range(2)] == [
        ("train", {"step_num": 7, "_r": 1}),
        ("train", {"step_num": 8, "_r": 1}),
    ]


def test_steps_called_alone_end_with_the_next_and_with_the_capture(logdir):
    profiler.step(0)  # before the capture: not recorded
    profiler.start(logdir)
    for i in (1, 2, 3):
        profiler.step(i)
        with profiler.annotate(f"work {i}"):
            pass
    trace = trace_of(profiler.stop())

    found = [trace.name_of(row) for row in range(len(trace.events))]
    steps = [row for row, name in enumerate(found) if name == "train"]
    assert found == ["train", "work 1", "train", "work 2", "train", "work 3"]
    assert trace.stat_ints(["step_num"])[steps].tolist() == [1, 2, 3]


def test_a_scheduled_capture_tells_what_it_cost(logdir, monkeypatch):
    monkeypatch.setattr(cost.LENGTHS, "compiling", cost._COMPILING)
    with profiler.Profile(logdir, schedule=profiler.schedule(wait=4, active=4, repeat=1)) as profile:
        for i in range(8):
            time.sleep(0.02 if i < 4 else 0.04)
            profile.step()

    told = load(profile.path).overview().profiling
    assert (told.steps_before, told.steps_inside) == (4, 4)
    assert told.ms_before >= 20  # a busy machine sleeps longer than told, and never shorter
    assert told.ms_inside >= 40


def test_steps_that_compile_are_not_those_that_profiling_is_compared_with():
    lengths = cost.StepLengths()
    for duration_ms in (9000, 800, 10, 10, 10):
        lengths.note(duration_ms * 10**6, recording=False)

    told = lengths.facts()
    assert (told["steps_before"], told["step_ms_before_high"]) == (3, 10)


def test_steps_that_end_while_files_are_written_are_those_before_the_next_capture(logdir, monkeypatch):
    monkeypatch.setattr(cost, "LENGTHS", cost.StepLengths())
    cost.LENGTHS.compiling = cost._COMPILING
    capture = RECORDER.start(logdir)
    RECORDER.end_capture(capture, wait=False)

    for _ in range(3):
        cost.LENGTHS.note(10**7, recording=False)
    assert capture.finished.wait(60)

    assert cost.LENGTHS.facts()["steps_before"] == 3


def test_a_first_step_of_unknown_length_counts_as_one_that_compiles():
    lengths = cost.StepLengths()
    lengths.note_unknown()
    for duration_ms in (800, 10, 10, 10):
        lengths.note(duration_ms * 10**6, recording=False)

    assert lengths.facts()["steps_before"] == cost.FEWEST == 3


def test_a_decorated_function_is_a_range_in_every_call(logdir):
    @profiler.Trace("fibonacci", kind="recursive")
    def fibonacci(n: int) -> int:
        """Docs."""
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    with profiler.Profile(logdir) as profile:
        assert fibonacci(3) == 2

    assert fibonacci.__doc__ == "Docs."
    assert names(profile.path) == ["fibonacci"] * 5
    assert trace_of(profile.path).stats_of_event(4) == {"kind": "recursive"}


# What runs in pieces: each piece is a range, and what others do between two of them is in none.


@profiler.Trace("piece")
def numbers():
    """Docs."""
    got = yield 1
    try:
        yield got
    except KeyError:
        yield "caught"
    return "end"


def test_each_piece_of_a_decorated_generator_is_a_range(logdir):
    with profiler.Profile(logdir) as profile:
        made = numbers()
        told = [next(made)]
        with profiler.annotate("consumer"):
            told.append(made.send("sent"))
        told.append(made.throw(KeyError("x")))
        with pytest.raises(StopIteration, match="end"):
            next(made)

    assert (inspect.isgeneratorfunction(numbers), numbers.__doc__) == (True, "Docs.")
    assert told == [1, "sent", "caught"]
    assert sorted(names(profile.path)) == ["consumer", *["piece"] * 4]


def test_a_decorated_generator_that_is_closed_is_closed():
    said = []

    @profiler.Trace("piece")
    def endless():
        try:
            while True:
                yield 1
        finally:
            said.append("closed")

    made = endless()
    next(made)
    made.close()

    assert said == ["closed"]


def test_each_piece_of_a_decorated_coroutine_is_a_range_and_tasks_do_not_overlap(logdir):
    """Two tasks take turns:  a begins, b begins, a ends, b ends."""
    order = []

    @profiler.Trace("task")
    async def task(name):
        order.append(f"{name} begins")
        await asyncio.sleep(0)
        order.append(f"{name} ends")
        return name

    async def both():
        return await asyncio.gather(task("a"), task("b"))

    with profiler.Profile(logdir) as profile:
        assert asyncio.run(both()) == ["a", "b"]

    assert inspect.iscoroutinefunction(task)
    assert order == ["a begins", "b begins", "a ends", "b ends"]
    events = trace_of(profile.path).events
    assert names(profile.path) == ["task"] * 4
    assert (events.start_ps[1:] >= (events.start_ps + events.duration_ps)[:-1]).all()


def test_an_exception_and_a_cancellation_pass_through_a_decorated_coroutine():
    said = []

    @profiler.Trace("task")
    async def waits():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            said.append("cancelled")
            raise

    @profiler.Trace("task")
    async def fails():
        raise KeyError("mine")

    async def program():
        waiting = asyncio.create_task(waits())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(KeyError, match="mine"):
            await fails()

    asyncio.run(program())
    assert said == ["cancelled"]


def test_each_piece_of_a_decorated_asynchronous_generator_is_a_range(logdir):
    @profiler.Trace("piece")
    async def batches():
        try:
            got = yield 1
            yield got
        except KeyError:
            yield "caught"

    async def program():
        made = batches()
        told = [await made.asend(None), await made.asend("sent"), await made.athrow(KeyError("x"))]
        return [*told, *[item async for item in made]]

    with profiler.Profile(logdir) as profile:
        assert asyncio.run(program()) == [1, "sent", "caught"]

    assert inspect.isasyncgenfunction(batches)
    assert names(profile.path) == ["piece"] * 4


def test_metadata_can_be_added_while_the_range_is_open(logdir):
    with profiler.Profile(logdir) as profile, profiler.Trace("call", name="f") as call:
        call.set_metadata(in_cache=True)
    with call:
        call.set_metadata(in_cache=False)  # nobody records: nothing happens

    assert trace_of(profile.path).stats_of_event(0) == {"name": "f", "in_cache": 1}


def test_a_range_that_raises_is_recorded_and_the_exception_passes(logdir):
    with profiler.Profile(logdir) as profile:
        with pytest.raises(ValueError), profiler.Trace("bad"):
            raise ValueError
        with pytest.raises(ValueError), profiler.step(1):
            raise ValueError

    assert names(profile.path) == ["bad", "train"]


def test_ranges_open_at_either_end_of_the_capture_are_not_recorded(logdir):
    with profiler.Trace("too early"):
        profiler.start(logdir)
    with profiler.Trace("whole"):
        pass
    with profiler.Trace("too late"):
        path = profiler.stop()

    assert names(path) == ["whole"]


def test_while_nothing_records_a_range_lets_everything_pass():
    with profiler.annotate("a") as a, profiler.Trace("b", key=1) as b, profiler.step(3) as c:
        for it in (a, b, c):
            it.set_metadata(more=1)
    with pytest.raises(ValueError), profiler.annotate("a"):
        raise ValueError


def test_every_thread_has_a_line_with_its_name(logdir):
    def work() -> None:
        with profiler.annotate("in thread"):
            pass

    with profiler.Profile(logdir) as profile:
        for name in ("loader-0", "loader-1"):
            thread = threading.Thread(target=work, name=name)
            thread.start()
            thread.join()
        work()
    trace = trace_of(profile.path)

    lines = [trace.strings[row] for row in trace.lines.name]
    assert sorted(lines) == sorted(["loader-0", "loader-1", threading.current_thread().name])
    assert threading.get_native_id() in trace.lines.line_id


def test_a_capture_may_end_while_threads_annotate(logdir):
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            with profiler.annotate("busy"):
                pass

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    paths = []
    for _ in range(5):
        profiler.start(logdir)
        with profiler.step(0):
            pass
        paths.append(profiler.stop())
    ended.set()
    for worker in workers:
        worker.join()

    assert [names(path).count("train") for path in paths] == [1] * 5


# -- captures that somebody else started -----------------------------------------------------------------------------


def test_a_foreign_capture_is_heard_of_at_the_next_step_mark_and_forgotten_at_the_one_after_it_ends(fake):
    def iteration(i: int) -> None:
        with profiler.Trace("train", step_num=i), profiler.annotate(f"load {i}"):
            pass

    iteration(0)
    fake.heeds = True
    with profiler.annotate("not yet"):
        pass
    iteration(1)
    fake.heeds = False
    iteration(2)

    assert fake.heard == ["train", "load 1"]


def test_a_foreign_capture_hears_nothing_while_ours_runs(fake, logdir, monkeypatch):
    fake.heeds = True
    monkeypatch.setenv("STEPSCOPE_TRACER", "host")
    with profiler.Profile(logdir) as profile, profiler.step(0):
        pass

    assert fake.heard == []
    assert names(profile.path) == ["train"]


# -- cost of importing -----------------------------------------------------------------------------------------------


def test_importing_it_loads_nothing_heavy():
    script = "import sys, stepscope.capture; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert "stepscope.capture.recorder" in loaded
    assert {"numpy", "stepscope.model", "tensorflow", "jax", "torch"} & set(loaded) == set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_leaves_the_capture_to_its_parent(logdir):
    script = f"""if True:
        import os, sys
        from stepscope import capture as profiler
        profiler.start({str(logdir)!r})
        child = os.fork()
        with profiler.annotate("child" if child == 0 else "parent"): pass
        if child == 0:
            sys.exit(profiler.stop() is not None)
        print(os.waitpid(child, 0)[1], profiler.stop())
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)

    status, path = done.stdout.split()
    assert status == "0"
    assert profiles(logdir) == [Path(path)]
    assert names(Path(path)) == ["parent"]


def test_a_remote_logdir_gets_the_files_at_the_end():
    with profiler.Profile("memory://bucket/logs") as profile, profiler.step(0):
        pass

    store = fsspec.filesystem("memory")
    assert profile.path is None
    assert re.fullmatch(r"memory://bucket/logs/plugins/profile/[\d_]+/vm\.xplane\.pb", profile.url)
    assert store.find("bucket") == [profile.url.removeprefix("memory:/")]
    assert [row["step"] for row in load("memory://bucket/logs").steps().to_dict()["rows"]] == [0]
    store.rm("bucket", recursive=True)
