"""What parts of the steps are followed down to: one drawing for each principle."""

from __future__ import annotations

import itertools
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from draw import MS, POOL, SORTS, Sort, draw
from gallery import gallery

from stepscope.analysis.account.culprits import Culprit, Finder
from stepscope.analysis.facts.culprits import culprits_of
from stepscope.model import EventKind as K
from stepscope.model import HostTrace, PlaneKind, TraceBuilder

SOURCES = {
    "t": Sort(K.PYTHON_CALL, "$train.py:9 train_step"),
    "f": Sort(K.PYTHON_CALL, "$model.py:5 forward"),
    "e": Sort(K.PYTHON_CALL, "$model.py:6 <genexpr>"),
    "u": Sort(K.PYTHON_CALL, "$train.py:3 update"),
    "l": Sort(K.PYTHON_CALL, "$train.py:30 main"),
    "k": Sort(K.PYTHON_CALL, "/x/site-packages/keras/src/trainer.py(314): fit"),
    "c": Sort(K.PYTHON_CALL, "/x/site-packages/keras/src/callbacks/callback_list.py(194): on_batch_end"),
    "w": Sort(K.PYTHON_CALL, "/x/site-packages/h5py/files.py(7): write"),
    "s": Sort(K.PYTHON_CALL, "$train.py:40 save_all"),
    "a": Sort(K.OP, "aten::mm", "Sequence number"),
    "b": Sort(K.OP, "aten::mm"),
    "B": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0", "Sequence number"),
    "p": Sort(K.OP, "PyFunc:PyFunc"),
    "g": Sort(K.PYTHON_CALL, "$data.py:8 encode"),
    "x": Sort(K.TRACED_FUNCTION, "PjitFunction(step)"),
    "h": Sort(K.COPY_HOST_TO_DEVICE_CALL, "H2D Dispatch"),
    "q": Sort(K.PYTHON_CALL, "$jax.py:3 block_until_ready"),
}
SORTS_HERE = SORTS | SOURCES


def culprit(trace: HostTrace, part: str) -> Culprit | None:
    found = culprits_of(trace)
    assert part in found
    return found[part].culprit


def place(trace: HostTrace, part: str) -> tuple[str, str | None, int | None]:
    found = culprit(trace, part)
    assert found is not None
    return found.place


@gallery("""
    backward work is followed to the line of its forward op
        host main | M0--------M1--------M2--------
        host main | f-u-------f-u-------f-u-------
        host main | a1B1------a2B2------a3B3------
        host main |   b-------  b-------  b-------
        host_compute.name = "forward"
        host_compute.calls = 1
        host_compute.ps = 10_000_000_000
    backward work of unknown forward ops stays where it runs
        host main | M0--------M1--------M2--------
        host main | f-u-------f-u-------f-u-------
        host main | a1B7------a2B8------a3B9------
        host_compute.place = ("update", "train.py", 3)
    what hooks of a backward pass send is no line of the program
        host main | M0--------M1--------M2--------
        host main | f-u-------f-u-------f-u-------
        host main | a1B1------a2B2------a3B3------
        host main |   G------   G------   G------
        communication.place = ("gloo:all_reduce", None, None)
    a collective that the program calls is its line
        host main | M0--------M1--------M2--------
        host main | f-u-------f-u-------f-u-------
        host main | a1G------ a2G------ a3G------
        communication.place = ("update", "train.py", 3)
    a comprehension is a part of the function around it
        host main | M0--------M1--------M2--------
        host main | f---------f---------f---------
        host main | e-------- e-------- e--------
        host main | b-------- b-------- b--------
        host_compute.place = ("forward", "model.py", 5)
    where a library runs the loop the first function within the loop is named
        host main | l-------------------------------
        host main | k-------------------------------
        host main |  M0--------M1--------M2--------
        host main |  b-- c-----b-- c-----b-- c-----
        host main |       w----     w----     w----
        python.name = "on_batch_end"
        python.calls = 1
        python.inside = "h5py/files.py:7 write"
    a function of the program around all steps is named where it runs the loop itself
        host main | l-------------------------------
        host main |  M0--------M1--------M2--------
        host main |  b--       b--       b--
        python.place = ("main", "train.py", 30)
    what holds several steps and only runs ops is no culprit of them
        host main | l-------------------------------
        host main |  M0--------M1--------M2--------
        host main |  b-------- b-------- b--------
        host_compute.place = ("aten::mm", None, None)
    the number of ops says who starts most of them, not their time
        host main | M0------------------M1------------------
        host main | f---------u---------f---------u---------
        host main | b-b-b-b-b-b---------b-b-b-b-b-b---------
        starts.name = "forward"
        starts.calls = 1
    a function that a dataset runs on another thread is its op where no Python was recorded
        host main                       | M0--------M1--------M2--------
        host main                       | b-------- b-------- b--------
        host tf_data_private_threadpool | p-------- p-------- p--------
        host tf_data_iterator_resource  | J-------- J-------- J--------
        feed.place = ("PyFunc:PyFunc", None, None)
    the Python that a dataset runs on another thread is followed into
        host main                       | M0--------M1--------M2--------
        host main                       | b-------- b-------- b--------
        host tf_data_private_threadpool | p-------- p-------- p--------
        host tf_data_iterator_resource  | J-------- J-------- J--------
        host tf_data_private_threadpool |  g------   g------   g------
        feed.place = ("encode", "data.py", 8)
    a copy of another thread is that of the line that ran as it started
        host main | l-----------------------------
        host main | M0--------M1--------M2--------
        host main | t-        t-        t-
        host main | x-        x-        x-
        host main |   q-------  q-------  q-------
        host main | P1!       P2!       P3!
        host pool |  h-----C1! h-----C2! h-----C3!
        transfer.place = ("train_step", "train.py", 9)
""")
def test_what_a_part_is_followed_down_to(picture: str, expected: dict[str, Any]) -> None:
    trace = draw(picture, SORTS_HERE)
    found = {name: attrgetter(name.partition(".")[2])(culprit(trace, name.partition(".")[0])) for name in expected}

    assert found == expected


def test_a_save_in_some_steps_is_named_though_the_median_step_has_none() -> None:
    trace = draw(
        """
        host main | M0----M1----M2----------M3----M4----------
        host main | b-----b-----b-----s-----b-----b-----s-----
        """,
        SORTS_HERE,
    )

    assert "checkpoint" not in {row.cause for row in culprits_of(trace).values() if row.ps > 3 * MS}
    found = culprit(trace, "checkpoint")
    assert found is not None
    assert (found.place, found.ps) == (("save_all", "train.py", 40), round(12 * MS / 5))


@pytest.mark.parametrize(
    ("sampled_ms", "named"),
    [
        (14, ("score", "mine.py", 4)),  # inside a call of the function, however short
        (18, ("PyFunc:PyFunc", None, None)),  # between two calls
    ],
)
def test_samples_of_foreign_threads_tell_the_python_that_a_graph_calls(
    sampled_ms: int, named: tuple[str, str | None, int | None]
) -> None:
    builder = TraceBuilder("host")
    host = builder.plane("/host:CPU", PlaneKind.HOST)
    main, pool = builder.line(host, "python", 7), builder.line(host, "tf_Compute/1", 1)
    stacks = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    foreign, feeder = builder.line(stacks, "thread 140370", 140370), builder.line(stacks, "feeder", 9)
    for step in range(5):
        main.event("train", 10 * step * MS, 10 * MS, K.STEP_MARK, {"step_num": step})
        main.event("train", 10 * step * MS, 9 * MS, K.TRACED_FUNCTION)
        main.event("produce", 10 * step * MS, 0, K.OTHER, {"_p": step + 1, "_pt": POOL})
        pool.event("StartRegion", (10 * step + 1) * MS, MS, K.REGION_BEGIN, {"_c": step + 1, "_ct": POOL})
        pool.event("PyFunc:PyFunc", (10 * step + 2) * MS, 6 * MS, K.OP)
        pool.event("StopRegion", (10 * step + 8) * MS, MS, K.REGION_END)
    for frame in ("/x/site-packages/tensorflow/python/ops/script_ops.py(239): __call__", "$mine.py:4 score"):
        foreign.event(frame, sampled_ms * MS, 0, K.PYTHON_CALL)
    feeder.event("$feed.py:3 fill", 0, 50 * MS, K.PYTHON_CALL)

    assert place(builder.build(), "callbacks") == named


@pytest.mark.parametrize(
    ("waits_in", "named"),
    [
        ("/x/site-packages/tensorflow/python/eager/execute.py(28): quick_execute", ("encode", "feed.py", 9)),
        ("$train.py:3 wait", ("wait", "train.py", 3)),  # the program's own function waits
    ],
)
def test_input_that_a_library_waits_for_is_followed_to_the_function_that_makes_it(
    waits_in: str, named: tuple[str, str | None, int | None]
) -> None:
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", 7)
    stacks = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    sampled, foreign = builder.line(stacks, "MainThread", 7), builder.line(stacks, "thread 140370", 140370)
    for step in range(10):
        main.event("train", 10 * step * MS, 10 * MS, K.STEP_MARK, {"step_num": step})
        main.event("IteratorGetNext", 10 * step * MS, 8 * MS, K.INPUT_WAIT)
    sampled.event(waits_in, 0, 100 * MS, K.PYTHON_CALL)
    for frame in ("$feed.py:5 batches", "$feed.py:9 encode"):
        foreign.event(frame, 14 * MS, 0, K.PYTHON_CALL)

    assert place(builder.build(), "input") == named


def test_a_stage_that_takes_from_python_is_followed_to_the_function_that_a_sample_of_any_step_shows() -> None:
    builder = TraceBuilder("host")
    pool = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "tf_data_iterator_resource/1", 1)
    stacks = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    foreign = builder.line(stacks, "thread 140370", 140370)
    for step in range(5):
        pool.event("Iterator::Root::Prefetch::FlatMap[0]::Generator", 10 * step * MS, 6 * MS, K.ITERATOR)
    for frame in ("$feed.py:5 batches", "$feed.py:9 encode"):
        foreign.event(frame, 32 * MS, 0, K.PYTHON_CALL)
    trace = builder.build()
    first = np.flatnonzero(trace.events.kind == K.ITERATOR)[:1]

    found = Finder(trace, first, trace.events.duration_ps[first]).culprit(np.arange(1))

    assert found is not None
    assert (found.name, found.file, found.line, found.calls) == ("encode", "feed.py", 9, 1)


def test_a_program_is_followed_to_the_line_that_calls_it() -> None:
    builder = TraceBuilder("host")
    builder.framework = "jax"
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    main, pool = builder.line(plane, "python"), builder.line(plane, "tf_XLAPjRtCpuClient/1")
    for step in range(3):
        start = step * 20
        main.event("train", start * MS, 20 * MS, K.STEP_MARK, {"step_num": step})
        for at, function in enumerate(("evaluate", "train")):
            number, begin = 2 * step + at, (start + 10 * at) * MS
            main.event(f"$train.py:{10 + at} {function}", begin, 9 * MS, K.PYTHON_CALL)
            main.event(f"PjitFunction({function})", begin, MS, K.TRACED_FUNCTION, {"_p": number, "_pt": 15})
            pool.event("run", begin + MS, 8 * MS, K.OTHER, {"_c": number, "_ct": 15})
            pool.event(
                "dot.1",
                begin + MS,
                8 * MS,
                K.OP,
                {"hlo_op": "dot.1", "hlo_module": f"jit_{function}", "program_id": at},
            )
    trace = builder.build()

    assert place(trace, "program jit_evaluate") == ("evaluate", "train.py", 10)
    assert place(trace, "program jit_train") == ("train", "train.py", 11)


@pytest.mark.parametrize("waits", ["Q-------------", " "], ids=["waits for the work", "waits for nothing"])
def test_device_work_of_one_kind_is_named_by_a_line_only_if_that_is_not_the_line_of_all_work(waits: str) -> None:
    sorts = SORTS_HERE | {
        "z": Sort(K.COPY_DEVICE_TO_DEVICE, "MemcpyD2D", "correlation_id"),
        "Q": Sort(K.SYNC, "cudaStreamSynchronize"),
    }
    waits = waits.ljust(16)
    copied = f"""
        host main | M0------------------M1------------------M2------------------
        host main | {{}}
        host main | L1L2{waits}L3L4{waits}L5L6{waits}
        gpu0 s    |   K1------z2------    K3------z4------    K5------z6------
        """
    apart, together = "t-f---------------- ", "t------------------ "

    assert place(draw(copied.format(apart * 3), sorts), "device_copies") == ("forward", "model.py", 5)
    assert culprit(draw(copied.format(together * 3), sorts), "device_copies") is None


@pytest.mark.parametrize("frame", ["t------------------ ", "".ljust(20)], ids=["one line for all", "no line"])
def test_device_work_of_one_kind_without_a_line_of_its_own_is_named_by_the_op_that_asks_for_it(frame: str) -> None:
    sorts = SORTS_HERE | {
        "y": Sort(K.OP, "aten::copy_"),
        "z": Sort(K.COPY_DEVICE_TO_DEVICE, "MemcpyD2D", "correlation_id"),
    }
    copied = f"""
        host main | M0------------------M1------------------M2------------------
        host main | {frame * 3}
        host main | b-y-                b-y-                b-y-
        host main | L1L2                L3L4                L5L6
        gpu0 s    |   K1------z2------    K3------z4------    K5------z6------
        """

    assert place(draw(copied, sorts), "device_copies") == ("aten::copy_", None, None)


def sampled(*samples: tuple[float, tuple[str, ...]]) -> HostTrace:
    """Steps of 17 ms, 7 of them an op, then Python; frames as the sampler joins them: they change half-way between two
    samples, each of which is a time in ms and a stack."""
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "thread 7 (python)", 7)
    frames = builder.line(
        builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE), "MainThread", 7
    )
    for step in range(12):
        main.event("train", step * 17 * MS, 17 * MS, K.STEP_MARK, {"step_num": step})
        main.event("aten::mm", step * 17 * MS, 7 * MS, K.OP)
    times = [time for time, _ in samples]
    changes = [times[0], *((a + b) / 2 for a, b in itertools.pairwise(times)), times[-1]]
    ranges: list[tuple[float, int, str, float]] = []
    for (_, stack), begin, end in zip(samples, changes, changes[1:], strict=False):
        for depth, name in enumerate(stack):
            joined = next((each for each in ranges if each[1:3] == (depth, name) and each[3] == begin), None)
            if joined is not None:
                ranges.remove(joined)
            ranges.append((joined[0] if joined else begin, depth, name, end))
    for begin, _, name, end in sorted(ranges):
        frames.event(name, round(begin * MS), round((end - begin) * MS), K.PYTHON_CALL)
    return builder.build()


LOOP, BACK, RATE = "$train.py:30 main", "$train.py:3 update", "$train.py:50 error_rate"
DISTANCE = "$train.py:44 edit_distance"


def test_samples_far_apart_count_at_the_moments_when_they_were_taken() -> None:
    # At 3 and 105 ms of all steps an op runs, at 54 and 149 ms Python does: those samples show its function.
    trace = sampled(
        (3, (LOOP, BACK)), (54 - 3, (LOOP, RATE, DISTANCE)), (105, (LOOP, BACK)), (149, (LOOP, RATE, DISTANCE))
    )

    assert place(trace, "python") == ("edit_distance", "train.py", 44)


def test_samples_within_the_loop_of_a_library_name_what_the_loop_calls() -> None:
    fit, callback, write = SOURCES["k"].name, SOURCES["c"].name, SOURCES["w"].name
    trace = sampled(
        *((3 + 34 * at, (LOOP, fit, "/x/site-packages/keras/src/trainer.py(9): run")) for at in range(2)),
        *((80 + 17 * at, (LOOP, fit, callback, write)) for at in range(5)),
    )

    found = culprit(trace, "python")
    assert found is not None
    assert (found.name, found.calls) == ("on_batch_end", None)


def test_samples_name_the_function_of_the_program_that_computes() -> None:
    attend, product = "$models/net.py:5 attend", "/x/site-packages/torch/functional.py(9): einsum"
    trace = sampled(*((3 + 17 * at, (LOOP, attend, product)) for at in range(11)))

    found = culprit(trace, "host_compute")
    assert found is not None
    assert (found.name, found.file, found.line, found.op) == ("attend", "models/net.py", 5, "aten::mm")


def test_of_several_functions_that_a_library_calls_the_largest_is_named() -> None:
    fetch = "/x/site-packages/torch/utils/data/_utils/fetch.py(49): fetch"
    item, batch = "$train.py:9 decode", "$train.py:20 collate"
    stacks = [(fetch, item), (fetch, item), (fetch, batch), (fetch,), (fetch,)]
    trace = sampled(*((10 + 17 * at, stacks[at % 5]) for at in range(11)))

    assert place(trace, "python") == ("decode", "train.py", 9)


def test_a_library_has_no_line_that_a_person_can_edit() -> None:
    wait = "/x/site-packages/keras/src/saving/saving_lib.py(195): save_model"
    trace = sampled(*((10 + 17 * at, (wait,)) for at in range(11)))

    assert place(trace, "checkpoint") == ("save_model", None, None)
