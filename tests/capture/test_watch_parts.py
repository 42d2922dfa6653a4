"""The parts of a watch, each on drawn input: no thread, no clock, no training."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from array import array

import pytest

from stepscope.capture.job import Worker
from stepscope.capture.out_of_memory import describe_request, is_out_of_memory
from stepscope.capture.places import find_place
from stepscope.capture.spool import RingSpool
from stepscope.capture.watching.baseline import Baseline, Length
from stepscope.capture.watching.options import WatchOptions
from stepscope.capture.watching.quota import enforce_quota, mark_run
from stepscope.capture.watching.rank_coordination import Ranks, write_request
from stepscope.capture.watching.series import Bucket
from stepscope.capture.watching.steps import StepRecord, Usage
from stepscope.capture.watching.triggers import Spikes, TimeTable, Trigger
from stepscope.errors import UsageError
from stepscope.formats.spool import layout
from stepscope.formats.spool.reader import parse
from stepscope.kernels.stacks import read_stack

MS = 1_000_000
SECOND = 1000 * MS


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("ring=90s", "ring", 90.0),
        ("stall=2min,slow_factor=5", "stall", 120.0),
        ("quota=2GB", "quota", 2e9),
        ("ring_bytes=1MiB", "ring_bytes", 2.0**20),
        ("at=03:00,15:30", "at", "03:00,15:30"),
        ("tensorboard=1", "tensorboard", True),
        ("metrics_port=9100", "metrics_port", 9100),
        ("1", "ring", 30.0),
    ],
)
def test_options_come_from_a_text(text, name, value):
    assert getattr(WatchOptions.from_text(text), name) == value


@pytest.mark.parametrize("text", ["rign=30s", "ring=long", "ring=-1", "at=25:00", "30s", "tensorboard=maybe"])
def test_a_wrong_option_is_refused(text):
    with pytest.raises(UsageError):
        WatchOptions.from_text(text)


# -- which steps are slow ----------------------------------------------------------------------------------------------


def slow_steps(lengths_ms, slow_factor=3.0, least_ms=20):
    usual = Baseline(slow_factor, least_ms * MS)
    return [number for number, length in enumerate(lengths_ms) if usual.judge(round(length * MS))]


def test_a_step_is_slow_that_takes_several_times_the_median():
    lengths = [10.0] * 100
    lengths[60] = 80

    assert slow_steps(lengths) == [60]


def test_the_first_steps_and_small_differences_are_not_slow():
    compiling = [2000.0, *[1.0] * 50]
    short = [1.0] * 50 + [15.0] + [1.0] * 10  # fifteen times the median, and only 14 ms more

    assert slow_steps(compiling) == []
    assert slow_steps(short) == []


def test_a_job_whose_steps_vary_by_themselves_is_not_slow():
    lengths = [10.0 if number % 10 else 45.0 for number in range(300)]

    assert slow_steps(lengths) == []


def test_steps_that_stay_longer_are_usual_after_a_while():
    found = slow_steps([10.0] * 100 + [60.0] * 200)

    assert found and max(found) < 130


def test_the_median_is_that_of_the_last_steps_without_the_slow_ones():
    usual = Baseline(3.0, 20 * MS)
    for length in [10] * 50 + [500] * 2 + [10] * 50:
        usual.judge(length * MS)

    assert usual.median_ns == 10 * MS


def test_waits_for_a_processor_do_not_hide_a_step_that_is_slow_by_itself():
    usual = Baseline(3.0, 20 * MS)
    noise = [(10 + 90 * (number % 10 == 0), 90 * (number % 10 == 0)) for number in range(200)]
    for length, queued in noise:
        assert not usual.judge(length * MS, queued * MS)

    assert not usual.judge(120 * MS, 110 * MS)
    assert usual.judge(120 * MS, 0)


def test_a_step_that_is_slow_only_because_it_waited_for_a_processor_is_contended():
    usual = Baseline(3.0, 20 * MS)
    for _ in range(100):
        usual.judge(10 * MS)

    assert usual.judge(120 * MS, 105 * MS) is Length.CONTENDED
    assert usual.judge(120 * MS, 30 * MS) is Length.SLOW
    assert usual.judge(500 * MS, 300 * MS) is Length.SLOW  # without its waits as well
    assert usual.judge(120 * MS) is Length.SLOW
    assert usual.judge(12 * MS, 10 * MS) is Length.USUAL


def test_a_row_of_the_series_counts_contended_steps():
    bucket = Bucket()
    steps = [step_of(), step_of(queued_ms=150)._replace(is_contended=True), step_of()._replace(is_slow=False)]
    bucket.add([], steps)

    row = bucket.take(0.0, {})
    assert (row["steps"], row["slow_steps"], row["contended_steps"]) == (3, 2, 1)


# -- why a step was slow -----------------------------------------------------------------------------------------------


def step_of(length_ms=200, usual_ms=20, queued_ms=0, faults=0, collector_ms=0):
    start = Usage(0, 0, 0, 0, 0)
    end = Usage(length_ms * MS, 0, queued_ms * MS, faults, collector_ms * MS)
    return StepRecord(412, start, end, True, usual_ms * MS, False)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (step_of(), ""),
        (step_of(queued_ms=120), ""),
        (step_of(collector_ms=170), ": Python's garbage collector ran for 170 ms"),
        (step_of(queued_ms=175), ": its thread waited 175 ms for a free core"),
        (step_of(faults=70), ", with 70 page faults that read the disk"),
    ],
)
def test_counters_of_the_thread_explain_a_slow_step_at_once(step, expected):
    assert step.describe() == f"Step 412 took 200 ms instead of 20 ms{expected}"


def test_a_place_is_the_users_own_line_and_what_it_does():
    import queue
    import threading

    filled: queue.Queue[int] = queue.Queue()
    started = threading.Event()

    def wait_for_batch():
        started.set()
        filled.get()

    thread = threading.Thread(target=wait_for_batch)
    thread.start()
    started.wait()
    try:

        def look():
            return find_place(read_stack(thread.ident, 128))

        place = look()
        while place is None or not place.activity:
            place = look()
    finally:
        filled.put(1)
        thread.join()

    assert place.function.endswith("wait_for_batch")
    assert place.file == __file__
    assert place.activity == "waiting for another thread"


# -- the ring on disk --------------------------------------------------------------------------------------------------


def chunk_of(name, at_ns):
    return layout.Chunk("/host:CPU", "main", 1, "ANNOTATION", [name], array("i", [0]), array("q", [at_ns]),
                        array("q", [at_ns + 10]))  # fmt: skip


class DrawnRing(RingSpool):
    """A ring whose clock is set with each write."""

    def __init__(self, path, span_s, most_bytes):
        self.now_ns = 0
        super().__init__(path, layout.session("host", "", 0, 0), span_s * SECOND, most_bytes, lambda: self.now_ns)

    def add_at(self, name, second):
        self.now_ns = second * SECOND
        self.add([chunk_of(name, self.now_ns)])


@pytest.fixture
def new_ring():
    made = []

    def make(path, span_s=10, most_bytes=1 << 20):
        made.append(DrawnRing(path, span_s, most_bytes))
        return made[-1]

    yield make
    for ring in made:
        ring.abandon()


def names_in(content):
    spool = parse(content)
    assert spool is not None
    return [name for _, name in spool._types]


def test_a_ring_keeps_the_last_seconds(tmp_path, new_ring):
    ring = new_ring(tmp_path / "ring")
    for second in range(30):
        ring.add_at(f"step {second}", second)

    assert names_in(ring.content()) == [f"step {second}" for second in range(19, 30)]


def test_the_file_of_a_ring_does_not_grow(tmp_path, new_ring):
    ring = new_ring(tmp_path / "ring")
    sizes = []
    for second in range(300):
        ring.add_at("x" * 50_000, second)
        sizes.append((tmp_path / "ring").stat().st_size)

    assert max(sizes) < 3_000_000
    assert len(names_in((tmp_path / "ring").read_bytes())) == 1


def test_a_ring_holds_at_most_its_bytes(tmp_path, new_ring):
    ring = new_ring(tmp_path / "ring", span_s=1000, most_bytes=100_000)
    for second in range(50):
        ring.add_at(f"{second} " + "x" * 10_000, second)

    assert ring.kept_bytes <= 100_000


class FullDisk:
    """A file that takes nothing while the disk is full."""

    def __init__(self, file, state):
        self._file, self._state = file, state

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        if self._state["full"]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.write(data)


def test_a_full_disk_costs_records_and_nothing_else(tmp_path, new_ring, caplog):
    ring, state = new_ring(tmp_path / "ring"), {"full": False}
    ring._file = FullDisk(ring._file, state)
    ring.add_at("before", 0)
    state["full"] = True
    ring.add_at("lost", 1)
    ring.add_at("lost", 2)
    state["full"] = False
    ring.add_at("after", 3)

    assert names_in(ring.content()) == ["before", "after"]
    assert ring.lost_events == 2
    assert caplog.text.count("No space left") == 1


def test_a_ring_whose_folder_disappears_makes_it_again(tmp_path, new_ring):
    folder = tmp_path / "logs" / "run"
    folder.mkdir(parents=True)
    ring = new_ring(folder / "ring")
    ring.add_at("before", 0)
    (folder / "ring").unlink()
    folder.rmdir()
    folder.parent.rmdir()
    ring.add_at("after", 6)  # it looks every five seconds

    assert names_in((folder / "ring").read_bytes()) == ["before", "after"]


# -- the quota ---------------------------------------------------------------------------------------------------------


def make_run(logdir, name, size, at, marked=True):
    folder = logdir / "plugins" / "profile" / name
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(b"x" * size)
    if marked:
        mark_run(folder, {})
        os.utime(folder / "stepscope-watch.json", (at, at))


def test_the_oldest_captures_of_watches_are_removed_first(tmp_path):
    make_run(tmp_path, "own", 5000, 1, marked=False)
    for number in range(4):
        make_run(tmp_path, f"run{number}", 1000, 100 + number)

    removed = enforce_quota(tmp_path, 2500, spared={"run1"})

    assert removed == ["run0", "run2"]
    assert sorted(path.name for path in (tmp_path / "plugins" / "profile").iterdir()) == ["own", "run1", "run3"]


def test_a_ring_that_is_written_is_not_removed(tmp_path):
    make_run(tmp_path, "ring", 1000, 1)
    (tmp_path / "plugins" / "profile" / "ring" / "host.xplane.pb.partial").write_bytes(b"")

    assert enforce_quota(tmp_path, 0, spared=()) == []


# -- all ranks together ------------------------------------------------------------------------------------------------


def ranks_of(logdir, count, job="job"):
    made = [Ranks(logdir, Worker(rank, job), 0) for rank in range(count)]
    for rank in made:
        rank.prepare()
    return made


def test_a_request_of_one_rank_reaches_the_others_once(tmp_path):
    first, second, third = ranks_of(tmp_path, 3)
    request = first.ask(Trigger.SLOW_STEP, "Step 3 was slow", "run", "window", 40)

    assert [other.poll() for other in (first, second, third)] == [[], [request], [request]]
    assert second.poll() == []


def test_ranks_that_do_not_answer_are_named(tmp_path):
    first, second, third = ranks_of(tmp_path, 3)
    for rank in (second, third):
        rank.beat(7, 0.0)
    request = first.ask(Trigger.STALL, "No step", "run")
    second.answer(second.poll()[0])

    assert first.silent_ranks(request) == [2]
    assert first.steps_of_others() == {1: (7, 0.0), 2: (7, 0.0)}


def test_two_ranks_that_ask_at_once_agree_on_one_request(tmp_path, monkeypatch):
    first, second = ranks_of(tmp_path, 2)
    monkeypatch.setattr("stepscope.capture.watching.rank_coordination._next_number", lambda requests, job: 0)

    one, other = first.ask(Trigger.SLOW_STEP, "a", "run"), second.ask(Trigger.SLOW_STEP, "b", "run")

    assert one == other


def test_another_job_is_not_asked_and_a_person_asks_all(tmp_path):
    (first,), (other,) = ranks_of(tmp_path, 1, "job"), ranks_of(tmp_path, 1, "other job")
    first.ask(Trigger.SLOW_STEP, "only this job", "run")
    assert other.poll() == []

    asked = write_request(tmp_path, "look at this")
    assert [rank.poll()[0].reason for rank in (first, other)] == ["look at this"] * 2
    assert asked.rank is None


@pytest.mark.parametrize(
    "content",
    ["", "{", '{"id": 3}', json.dumps({"trigger": "rm -rf", "reason": ""}), "[" * 10_000, "\0"],
)
def test_a_damaged_request_is_ignored(tmp_path, content):
    (rank,) = ranks_of(tmp_path, 1)
    folder = tmp_path / "plugins" / ".stepscope" / "watch" / "requests"
    (folder / "any-000000.json").write_text(content)
    (folder / "any-1000000000000.json").write_text("{}")

    assert rank.poll() == []


def test_a_request_names_no_place_outside_the_logdir(tmp_path):
    (rank,) = ranks_of(tmp_path, 1)
    facts = {"id": "x", "job": "any", "trigger": "requested", "reason": "r", "rank": None, "unix_ns": 1,
             "run": "../../../etc/cron.d", "window": "/tmp/x", "first_step": 0}  # fmt: skip
    folder = tmp_path / "plugins" / ".stepscope" / "watch" / "requests"
    (folder / "any-000000.json").write_text(json.dumps(facts))

    (request,) = rank.poll()

    assert (request.run, request.window) == ("_.._.._etc_cron.d", "_tmp_x")


# -- the other triggers ------------------------------------------------------------------------------------------------


def test_a_spike_and_the_first_value_that_is_not_finite_are_triggers():
    spikes = Spikes()
    usual = [spikes.judge("loss", 1.0 + 0.01 * (number % 5)) for number in range(40)]
    found = [spikes.judge("loss", value) for value in (9.0, 1.01, float("nan"), float("nan"), 1.0)]

    assert usual == [""] * 40
    assert found == ["loss is 9; the median of the last 40 was 1.02", "", "loss is nan; it was 1.01 before", "", ""]


def test_a_time_table_is_due_at_its_interval_and_at_its_times():
    day = 1_700_000_000 // 86400 * 86400
    table = TimeTable(60.0, "", 0.0, day)
    assert [table.is_due(now, day) for now in (30.0, 60.0, 61.0, 121.0)] == [False, True, False, True]


def test_a_time_of_the_day_is_due_once_and_not_when_the_clock_jumps_over_it(monkeypatch):
    monkeypatch.setattr("stepscope.capture.watching.triggers._minute_of_day", lambda unix_s: int(unix_s) // 60)
    table = TimeTable(0.0, "03:00", 0.0, 179 * 60)

    assert [table.is_due(0.0, at * 60) for at in (179, 180, 180.5, 181)] == [False, True, False, False]
    assert [table.is_due(0.0, at * 60) for at in (170, 190)] == [False, False]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("shapes do not match"), False),
        (ValueError("out of memory"), False),
        (None, False),
    ],
)
def test_out_of_memory_is_recognized(error, expected):
    assert is_out_of_memory(error) is expected


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1 GiB", "asked for 2.00 GiB"),
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8000000000 bytes.", "asked for 8.00 GB"),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4.50GiB", "asked for 4.50GiB"),
        ("RESOURCE_EXHAUSTED: Out of memory allocating 500000000 bytes.", "asked for 500 MB"),
        ("OOM when allocating tensor with shape[8,4] and type float on GPU:0",
         "asked for tensor with shape[8,4] and type float"),
        ("Unable to allocate 7.45 GiB for an array with shape (10,)", "asked for 7.45 GiB"),
        ("something else", ""),
    ],
)  # fmt: skip
def test_who_asked_for_the_memory_is_read_from_message_and_traceback(message, asked):
    def load() -> None:
        raise MemoryError(message)

    assert describe_request(MemoryError(message)) == asked
    with pytest.raises(MemoryError) as caught:
        load()
    where = rf"in .*load \(test_watch_parts\.py:{load.__code__.co_firstlineno + 1}\)"
    assert re.fullmatch(re.escape(f"{asked} " if asked else "") + where, describe_request(caught.value))


def test_what_a_signal_raises_while_the_collector_runs_is_the_programs():
    program = """
import gc, signal
from stepscope.capture.watching.collector import CollectorMeter

class StopError(Exception):
    pass

def stop(*_):
    raise StopError

meter, seen = CollectorMeter(), 0
signal.signal(signal.SIGALRM, stop)
meter.start()
for _ in range(30):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        for _ in range(1_000_000):
            gc.collect(0)
    except StopError:
        seen += 1
meter.stop()
print(seen)
"""
    # In a process of its own: what other tests hook into the collector would meet the exception first.
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    assert (done.returncode, done.stdout) == (0, "30\n"), done.stderr
