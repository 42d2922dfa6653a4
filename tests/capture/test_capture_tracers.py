"""Which tracer is chosen, and what Stepscope's own makes of its readings."""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext
from fractions import Fraction
from types import SimpleNamespace

import pytest

from stepscope.capture import ProfilerOptions, tracers
from stepscope.capture.tracers import host, jax, ranges
from stepscope.capture.tracers.base import Probe
from stepscope.capture.tracers.giving_way import ProfilerOwnership
from stepscope.capture.tracers.ticker import Ticker
from stepscope.errors import CaptureError
from stepscope.formats.spool import layout
from stepscope.formats.spool.reader import parse
from stepscope.formats.xspace.reader import read
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, HostTrace, StatTag, Trait

JAX_USED = {"jax._src.xla_bridge": SimpleNamespace(backends_are_initialized=lambda: True)}
JAX_IDLE = {"jax._src.xla_bridge": SimpleNamespace(backends_are_initialized=lambda: False)}
TF_USED = {"tensorflow.python.eager.context": SimpleNamespace(_context=SimpleNamespace(_initialized=True))}
TF_IDLE = {"tensorflow.python.eager.context": SimpleNamespace(_context=None)}


def keras(backend: str) -> dict[str, SimpleNamespace]:
    return {"keras": SimpleNamespace(config=SimpleNamespace(backend=lambda: backend))}


@pytest.fixture(autouse=True)
def no_framework(monkeypatch):
    """Whatever other tests have imported."""
    monkeypatch.delenv("STEPSCOPE_TRACER", raising=False)
    for name in ("tensorflow", "jax", "torch", "keras", *JAX_USED, *TF_USED):
        monkeypatch.delitem(sys.modules, name, raising=False)


RULE = [
    # imported, signs of use, chosen
    ("", {}, "host"),
    ("tensorflow", TF_IDLE, "tensorflow"),
    ("jax", JAX_IDLE, "jax"),
    ("torch", {}, "torch"),
    ("tensorflow jax", TF_IDLE | JAX_IDLE, "tensorflow"),  # TensorFlow imports JAX
    ("tensorflow jax", TF_USED | JAX_IDLE, "tensorflow"),
    ("tensorflow jax", TF_USED | JAX_USED, "jax"),  # tf.data feeds JAX
    ("tensorflow jax torch", TF_IDLE | JAX_IDLE, "torch"),  # a writer of TensorBoard logs
    ("tensorflow torch", TF_USED, "tensorflow"),
    ("jax torch", JAX_USED, "jax"),  # a DataLoader feeds JAX
    ("tensorflow jax", keras("jax") | TF_USED | JAX_IDLE, "jax"),
    ("tensorflow jax torch", keras("torch") | TF_USED | JAX_IDLE, "torch"),
    ("jax torch", keras("tensorflow") | JAX_USED, "jax"),  # Keras' default proves nothing
]


@pytest.mark.parametrize(("imported", "signs", "chosen"), RULE)
def test_the_rule(monkeypatch, imported, signs, chosen):
    for name in imported.split():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(profiler=True))
    for name, module in signs.items():
        monkeypatch.setitem(sys.modules, name, module)

    assert tracers.choose().name == chosen


def test_the_environment_overrules(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(profiler=True))
    monkeypatch.setenv("STEPSCOPE_TRACER", "host")

    assert tracers.choose().name == "host"


@pytest.mark.parametrize(("wanted", "said"), [("cobol", "jax, tensorflow, torch, host"), ("torch", "import torch")])
def test_an_environment_that_names_nothing_usable_is_told(monkeypatch, wanted, said):
    monkeypatch.setenv("STEPSCOPE_TRACER", wanted)

    with pytest.raises(CaptureError, match=said):
        tracers.choose()


def test_a_framework_that_is_just_being_imported_does_not_count(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())

    assert tracers.choose().name == "host"


def test_a_doubtful_choice_is_told(monkeypatch, caplog):
    for name in ("torch", "tensorflow"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(profiler=True))
    tracers.choose()

    assert [record.getMessage() for record in caplog.records] == [
        "torch is profiled, tensorflow is imported too; set STEPSCOPE_TRACER to choose another"
    ]


def test_jax_that_came_with_tensorflow_is_no_doubt(monkeypatch, caplog):
    for name, module in {"jax": SimpleNamespace(profiler=True), "tensorflow": SimpleNamespace(profiler=True)}.items():
        monkeypatch.setitem(sys.modules, name, module)
    tracers.choose()

    assert caplog.records == []


def test_a_profiler_that_is_still_being_stopped_gets_no_more_ranges(monkeypatch):
    marks: list[str] = []

    class Profiler:
        @staticmethod
        def is_listening():
            return True

        def annotate(self, name, metadata):
            marks.append(f"{name} {metadata['step_num']}")
            return nullcontext()

    monkeypatch.setattr(tracers, "find_imported", lambda: iter([SimpleNamespace(load=lambda: Profiler)]))
    released = threading.Event()

    ranges.route(None, released=released)
    with ranges.step(1):
        pass
    released.set()
    with ranges.step(2):
        pass
    ranges.route(None)

    assert marks == ["train 2"]


# -- Stepscope's own -------------------------------------------------------------------------------------------------


class Clock:
    """A clock that stands still until it is set."""

    now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tracer(clock) -> host.HostTracer:
    """Its clock reads 1,000 ns where the wall clock reads 5,000,000 ns."""
    clock.now = 1_000
    tracer = host.HostTracer()
    tracer.start(ProfilerOptions(), clock)
    return tracer


def recorded(tracer: Probe, clock: Clock) -> HostTrace:
    """What a tracer recorded since 1,000 ns, by way of a spool."""
    tracer.stop()
    records = [layout.session("vm", "", 1_000, 5_000_000), *map(layout.chunk, tracer.drain()), layout.end(clock.now)]
    spool = parse(b"".join(records))
    assert spool is not None
    return spool.trace("vm")


def record(tracer: host.HostTracer, clock: Clock, name: object, start: int, end: int, **metadata: object) -> None:
    clock.now = start
    with tracer.annotate(name, metadata):
        clock.now = end


def test_threads_that_have_ended_are_forgotten_once_their_ranges_are_drained(tracer, clock):
    def annotate():
        with tracer.annotate("range", {}):
            pass

    for _ in range(300):
        thread = threading.Thread(target=annotate)
        thread.start()
        thread.join()
    annotate()

    assert sum(len(chunk.name) for chunk in tracer.drain()) == 301
    assert len(tracer._threads) == 1
    annotate()
    assert sum(len(chunk.name) for chunk in tracer.drain()) == 1


def test_times_count_from_the_start_of_the_capture(tracer, clock):
    #  1000   1100      1250  1300      1500   1600
    #          load------load
    #                          train-----train
    record(tracer, clock, "load", 1_100, 1_250)
    record(tracer, clock, "train", 1_300, 1_500, step_num=4, _r=1)
    clock.now = 1_600
    trace = recorded(tracer, clock)

    assert [trace.name_of(row) for row in range(2)] == ["load", "train"]
    assert trace.events.start_ps.tolist() == [100_000, 300_000]
    assert trace.events.duration_ps.tolist() == [150_000, 200_000]
    assert trace.events.kind.tolist() == [EventKind.ANNOTATION, EventKind.STEP_MARK]
    assert trace.events.traits.tolist() == [Trait.NONE, Trait.EXPLICIT_ROOT]
    assert (trace.start_unix_ns, trace.stop_unix_ns) == (5_000_000, 5_000_600)


def test_a_range_that_ends_later_but_began_earlier_comes_first(tracer, clock):
    clock.now = 1_100
    with tracer.annotate("outer", {}):
        record(tracer, clock, "inner", 1_200, 1_300)
        clock.now = 1_400
    trace = recorded(tracer, clock)

    assert [trace.name_of(row) for row in range(2)] == ["outer", "inner"]


def test_the_wall_clock_is_kept_as_other_readers_expect_it(tracer, clock):
    clock.now = 1_600
    trace = read(write(recorded(tracer, clock)), "own", "vm")

    environment = [trace.plane_name(row) for row in range(len(trace.planes))].index("Task Environment")
    times = {"profile_start_time": 5_000_000, "profile_stop_time": 5_000_600}
    assert trace.stats_of_plane(environment) == times
    assert set(trace.plane_stats.tag.tolist()) == {StatTag.UINT}


class Index:
    def __index__(self) -> int:
        return 7


class Float:
    def __float__(self) -> float:
        return 0.5


class Array:
    def __index__(self) -> int:
        raise TypeError("only scalars")

    def __float__(self) -> float:
        raise RuntimeError("only one element")

    def __str__(self) -> str:
        return "[1 2]"


class Untellable:
    def __index__(self) -> int:
        raise KeyError("no")

    __float__ = __str__ = __repr__ = __index__


METADATA = [
    (3, 3),
    (True, 1),
    (-(1 << 63), -(1 << 63)),
    ((1 << 64) - 1, (1 << 64) - 1),
    (1 << 64, "18446744073709551616"),
    (1.5, 1.5),
    ("text", "text"),
    (b"bytes", b"bytes"),
    (None, "None"),
    (Index(), 7),
    (Float(), 0.5),
    (Array(), "[1 2]"),
    ([1, 2], "[1, 2]"),
    (Untellable(), "<Untellable>"),
    (10**5000, "<int>"),  # Python writes no number of so many digits
    (Fraction(10**400), "1" + "0" * 400),  # too large for a float
]
METADATA_IDS = [type(given).__name__ + str(row) for row, (given, _) in enumerate(METADATA)]


@pytest.mark.parametrize(("given", "kept"), METADATA, ids=METADATA_IDS)
def test_metadata_is_kept_as_a_number_where_it_is_one(tracer, clock, given, kept):
    record(tracer, clock, "call", 1_100, 1_200, value=given)

    assert recorded(tracer, clock).stats_of_event(0) == {"value": kept}


def test_a_range_marked_as_a_stage_of_the_input_is_a_wait_for_input(tracer, clock):
    for metadata in ({"_ipl_stage_name": "batch"}, {"step_num": 3}, {}):
        with tracer.annotate("range", metadata):
            clock.now += 10
    trace = recorded(tracer, clock)

    assert [EventKind(kind).name for kind in trace.events.kind] == ["INPUT_WAIT", "STEP_MARK", "ANNOTATION"]


def test_a_range_that_ends_after_the_capture_is_not_in_it(tracer, clock):
    record(tracer, clock, "inside", 1_100, 1_200)
    span = tracer.annotate("across", {})
    span.__enter__()
    clock.now = 1_300
    tracer.stop()
    clock.now = 1_400
    span.__exit__(None, None, None)

    assert [chunk.names for chunk in tracer.drain()] == [["inside"]]


# -- giving way ----------------------------------------------------------------------------------------------------


def framework(said: list[str]) -> SimpleNamespace:
    return SimpleNamespace(start=lambda folder: said.append(f"start {folder}"))


def test_the_program_starts_a_profiler_after_ours_has_ended():
    said: list[str] = []
    native = framework(said)
    original = native.start
    possession = ProfilerOwnership(lambda: said.append("ours ends"))
    possession.end_before_call(native, "start", then=lambda folder: said.append(f"prepare {folder}"))
    native.start("theirs")
    native.start("again")
    possession.end()

    assert said == ["ours ends", "prepare theirs", "start theirs", "start again"]
    assert possession.gave_way
    assert native.start is original


def test_a_capture_that_nobody_disturbs_ends_once_and_leaves_the_framework_as_it_was():
    said: list[str] = []
    native = framework(said)
    original = native.start
    possession = ProfilerOwnership(lambda: said.append("ours ends"))
    possession.end_before_call(native, "start")
    possession.end_before_call(native, "of_another_release")
    possession.end()
    possession.end()
    native.start("theirs")

    assert said == ["ours ends", "start theirs"]
    assert (possession.gave_way, native.start) == (False, original)


def test_a_failure_of_ours_does_not_reach_the_program_but_the_capture():
    said: list[str] = []
    native = framework(said)

    def fails() -> None:
        raise RuntimeError("no session")

    possession = ProfilerOwnership(fails)
    possession.end_before_call(native, "start")
    native.start("theirs")

    assert said == ["start theirs"]
    with pytest.raises(RuntimeError, match="no session"):
        possession.end()


class Array:
    """An array of JAX that has been computed at a time of a clock that `sleep` moves; `never` is one of a dead device,
    `deleted` one that the program has donated meanwhile."""

    now = 0.0

    def __init__(self, when: float, deleted: bool = False) -> None:
        self._when = when
        self._deleted = deleted

    def is_ready(self) -> bool:
        if self._deleted:
            raise RuntimeError("Array has been deleted.")
        return Array.now >= self._when

    @staticmethod
    def sleep(seconds: float) -> None:
        Array.now += seconds


class Opaque:
    """An array that does not tell."""


@pytest.mark.parametrize(
    ("arrays", "waited"),
    [
        ([], 0),
        ([Array(0), Array(3), Array(1)], 3),
        ([Array(0, deleted=True), Array(1)], 1),
        ([Opaque()], 0),
        ([Array(float("inf"))], jax.LONGEST_WAIT_S),
        ([Array(float("inf")), Array(float("inf"))], jax.LONGEST_WAIT_S),
    ],
    ids=["none", "the last one", "deleted", "does not tell", "never", "never, twice"],
)
def test_a_capture_of_jax_goes_on_until_what_was_called_has_run_or_has_had_its_time(arrays, waited):
    Array.now = 0.0

    jax.await_results(arrays, clock=lambda: Array.now, sleep=Array.sleep)

    assert Array.now == pytest.approx(waited, abs=0.01)


def test_an_array_that_is_waited_for_may_go_away_meanwhile():
    """The program lets go of it: a device whose memory is nearly full needs the room."""
    arrays = [Array(float("inf"))]
    Array.now = 0.0

    def sleep(seconds: float) -> None:
        Array.sleep(seconds)
        arrays.clear()

    jax.await_results(iter(arrays), clock=lambda: Array.now, sleep=sleep)

    assert Array.now < 1


def test_a_profiler_of_all_threads_sees_nothing_of_a_ticker() -> None:
    seen: set[str] = set()
    called = threading.Event()

    def look_around() -> None:
        called.set()

    threading.setprofile(lambda frame, event, arg: seen.add(frame.f_code.co_name))
    try:
        ticker = Ticker("unseen", 0.001, look_around)
        ticker.start()
        assert called.wait(60)
    finally:
        threading.setprofile(None)
    assert ticker.stop(60)

    assert not seen & {"_run", "look_around"}
