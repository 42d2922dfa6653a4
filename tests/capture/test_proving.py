"""Campaigns on small programs whose clock the test turns: what is measured, and that nothing stays patched."""

from __future__ import annotations

import functools
import gc
import importlib.util
import logging
import random
import sys
import threading
from importlib.machinery import SourceFileLoader
from types import SimpleNamespace

import pytest
from program_runs import run_warm

from stepscope.capture.patches import swap_attribute, swap_code
from stepscope.capture.proving import changes, relays
from stepscope.capture.proving.experiment import Experiment
from stepscope.capture.proving.options import ProveOptions
from stepscope.capture.proving.prover import places_of, wait_for_devices
from stepscope.capture.proving.saving import redirect
from stepscope.proof.record import read_proofs


class Clock:
    """A clock that only moves when something takes time."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    thread_time = perf_counter

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(changes, "time", made)
    monkeypatch.setattr(changes, "_compute", lambda: made.sleep(1e-5))
    return made


def prove(clock, step, steps=2000, **asked):
    """Sends an experiment the steps of a program; the proofs by place."""
    experiment = Experiment(ProveOptions("job.py", **asked), lambda line: None, clock.perf_counter)
    running = experiment.run()
    next(running)
    try:
        for _ in range(steps):
            start = clock.now
            step()
            running.send([clock.now - start])
    except StopIteration:
        pass
    running.close()
    return {proof.place: proof for proof in experiment.proofs}


def test_a_place_that_the_step_waits_for_has_sensitivity_one_and_a_hidden_one_zero(clock):
    def fetch_batch():
        clock.now += 0.004

    def report_hidden():
        clock.now += 0.001

    def step():
        fetch_batch()
        start = clock.now
        report_hidden()
        clock.now = max(start + 0.02, clock.now)  # the device works meanwhile

    found = prove(clock, step, at=("fetch_batch", "report_hidden"))
    assert found["fetch_batch"].value == pytest.approx(1)
    assert found["report_hidden"].value == pytest.approx(0, abs=1e-6)
    assert found["fetch_batch"].place_ms == pytest.approx(4)
    assert found["fetch_batch"].step_ms == pytest.approx(24)
    assert found["fetch_batch"].file == __file__


def test_noise_drift_and_outliers_leave_the_sensitivity_in_its_interval(clock):
    drawn, ran = random.Random(3), []

    def fetch_noisy():
        clock.now += 0.005

    def step():
        ran.append(1)
        fetch_noisy()
        clock.now += 0.015 + 1e-6 * len(ran) + abs(drawn.gauss(0, 0.001)) + 0.05 * (drawn.random() < 0.02)

    proof = prove(clock, step, steps=5000, at=("fetch_noisy",), budget_s=120.0)["fetch_noisy"]
    assert proof.least <= 1 <= proof.most
    assert proof.value == pytest.approx(1, abs=0.2)


def test_without_a_function_a_step_takes_as_long_as_the_rest(clock):
    given = []

    def load_sample():
        clock.now += 0.002
        return object()

    def step():
        given.append([load_sample(), load_sample()])
        clock.now += 0.008

    proof = prove(clock, step, ablate=("load_sample",))["load_sample"]
    assert (proof.value, proof.step_ms, proof.changed_ms) == (pytest.approx(1.5), pytest.approx(12), pytest.approx(8))
    assert all(first is not second for first, second in given)  # the two results of a step come again in their order


def test_logging_is_left_out_in_the_changed_blocks_only(clock, caplog):
    log = logging.getLogger("job")

    def step():
        clock.now += 0.01
        log.warning("a line")

    caplog.set_level(logging.WARNING)
    assert prove(clock, step, steps=400, ablate=("logging",))["logging"].value == pytest.approx(1)
    assert 0 < len(caplog.records) < 400


def test_functions_that_a_program_has_frozen_for_its_collector_are_found(clock, monkeypatch):
    def step():
        clock.now += 0.01

    class Deprecated:
        def __getattribute__(self, name):
            raise AssertionError(f"the program's own code ran, for {name}")

    monkeypatch.setitem(sys.modules, "loads_when_looked_at", Deprecated())
    monkeypatch.setattr(sys.modules[__name__], "deprecated_name", Deprecated(), raising=False)
    gc.freeze()
    try:
        proof = prove(clock, step, at=("test_proving.py:prove",))["test_proving.py:prove"]
    finally:
        gc.unfreeze()
    assert "holds the loop of the steps" in proof.note


@pytest.mark.parametrize(
    ("place", "note"),
    [
        ("no_such_function", "there is no such function"),
        ("other.py:sleep_long", "there is no such function"),
        ("never_called_here", "it was never called in these steps"),
        ("test_proving.py:prove", "holds the loop of the steps"),
        ("yield_batches", "is a generator or a coroutine"),
    ],
)
def test_a_place_that_cannot_be_proved_is_said(clock, place, note):
    def never_called_here():
        """Nobody calls it."""

    def yield_batches():
        while True:
            yield 1

    batches = yield_batches()

    def step():
        next(batches)
        clock.now += 0.01

    proof = prove(clock, step, at=(place,))[place]
    assert proof.value is None
    assert note in proof.note
    assert never_called_here() is None


def test_a_result_of_a_backward_pass_is_not_given_again(clock):
    def forward_pass():
        clock.now += 0.001
        return SimpleNamespace(grad_fn="MulBackward")

    def step():
        assert forward_pass().grad_fn
        clock.now += 0.01

    proof = prove(clock, step, ablate=("forward_pass",))["forward_pass"]
    assert proof.value is None
    assert "backward pass" in proof.note


@pytest.mark.parametrize("steps", [0, 3, 20, 60])
def test_a_program_that_ends_early_is_left_as_it_was(clock, steps):
    def fetch_early():
        clock.now += 0.01

    code = fetch_early.__code__
    proof = prove(clock, fetch_early, steps=steps, at=("fetch_early",))["fetch_early"]
    assert proof.note == "the program ended too early"
    assert fetch_early.__code__ is code


def test_plain_blocks_run_the_code_of_the_program_itself(clock):
    ran = []

    def fetch_plain():
        clock.now += 0.01

    code = fetch_plain.__code__

    def step():
        ran.append(fetch_plain.__code__ is code)
        fetch_plain()

    prove(clock, step, at=("fetch_plain",))
    assert fetch_plain.__code__ is code
    assert 0.3 < sum(ran) / len(ran) < 0.8


def test_all_ranks_have_the_same_blocks_whatever_each_finds(clock, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")

    def fetch_rank():
        clock.now += 0.01

    def count_steps(place):
        ran = []

        def step():
            ran.append(1)
            fetch_rank()

        prove(clock, step, steps=5000, at=(place,))
        return len(ran)

    assert count_steps("fetch_rank") == count_steps("only_on_another_rank")


def test_one_rank_alone_is_changed_and_answers(clock, monkeypatch, tmp_path):
    def reduce_gradients():
        clock.now += 0.01

    def prove_on(rank):
        monkeypatch.setenv("RANK", rank)
        found = Experiment(ProveOptions("job.py", at=("reduce_gradients@1",)), lambda line: None, clock.perf_counter)
        running = found.run()
        next(running)
        steps = 0
        try:
            while True:
                start = clock.now
                reduce_gradients()
                running.send([clock.now - start])
                steps += 1
        except StopIteration:
            found.save(tmp_path)
            return steps

    monkeypatch.setenv("WORLD_SIZE", "2")
    steps_of_changed = prove_on("1")
    assert read_proofs(tmp_path)[0].value == pytest.approx(1)
    assert prove_on("0") == steps_of_changed
    assert [proof.value for proof in read_proofs(tmp_path)] == [
        pytest.approx(1)
    ]  # what rank 0 does not know changes nothing


def test_a_rank_that_does_not_answer_is_said_by_the_first(clock, monkeypatch, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    running = Experiment(ProveOptions("job.py", at=("collective@1",)), lambda line: None, clock.perf_counter)
    running.conclude("the program ended too early")
    running.save(tmp_path)
    assert [proof.note for proof in read_proofs(tmp_path)] == ["rank 1 measures it, and has not answered"]


def test_a_place_that_only_other_threads_call_is_measured_and_said(clock):
    def load_aside():
        clock.now += 0.004

    def step():
        loader = threading.Thread(target=load_aside)
        loader.start()
        loader.join()
        clock.now += 0.01

    proof = prove(clock, step, at=("load_aside",))["load_aside"]
    assert proof.value == pytest.approx(1)
    assert proof.note == "only other threads than that of the steps call it"


def test_what_a_function_does_besides_is_said_to_be_left_out(clock):
    written = []

    def write_row():
        clock.now += 0.005
        written.append(1)

    def step():
        write_row()
        clock.now += 0.005

    proof = prove(clock, step, ablate=("write_row",))["write_row"]
    assert (proof.value, proof.note) == (pytest.approx(2), "its side effects were left out, too")


def test_blocks_of_a_place_that_some_steps_call_hold_as_many_of_its_calls(clock):
    ran = []

    def save_sometimes():
        clock.now += 0.07

    def step():
        ran.append(1)
        if len(ran) % 7 == 0:
            save_sometimes()
        clock.now += 0.06

    proof = prove(clock, step, ablate=("save_sometimes",), budget_s=600.0)["save_sometimes"]
    assert proof.value == pytest.approx(7 / 6, rel=0.03)


def test_a_pipeline_that_fills_its_buffer_meanwhile_is_given_steps_to_empty_it(clock):
    ready, taken = [0.0], []

    def take_batch():
        ready[0] = min(ready[0], 20)  # what a block without the pipeline leaves ready
        clock.now += 0.0 if ready[0] > 0 else 0.01
        ready[0] = max(ready[0] - 1, 0)
        taken.append(1)

    def step():
        before = len(taken)
        take_batch()
        clock.now += 0.01
        ready[0] += len(taken) == before

    proof = prove(clock, step, steps=20000, ablate=("take_batch",))["take_batch"]
    assert proof.value == pytest.approx(2, rel=0.05)


@pytest.fixture
def walks(tmp_path, clock):
    """A module of a program that was named before it was imported."""
    text = "def make_walks(clock):\n    while True:\n        clock.now += 0.01\n        yield object()\n"
    (tmp_path / "walks.py").write_text(text)
    undo = relays.install(["walks.py:make_walks"])
    spec = importlib.util.spec_from_file_location("walks", tmp_path / "walks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    undo()
    assert not {"get_code", "source_to_code"} & vars(SourceFileLoader).keys()
    return module.make_walks(clock)


@pytest.mark.parametrize(("asked", "value"), [("at", 1), ("ablate", 2)])
def test_a_generator_that_was_named_from_the_start_is_a_place(clock, walks, asked, value):
    def step():
        next(walks)
        clock.now += 0.01

    proof = prove(clock, step, **{asked: ("walks.py:make_walks",)})["walks.py:make_walks"]
    assert proof.value == pytest.approx(value)
    assert proof.place_ms == pytest.approx(10)


@pytest.mark.parametrize(("asked", "value"), [("at", 1), ("ablate", 1.5)])
def test_a_jitted_function_is_changed_where_it_is_called_and_not_in_what_is_traced(clock, asked, value, monkeypatch):
    # Like a jitted function, a partial one is called through a pointer in itself.
    monkeypatch.setitem(sys.modules, "jaxlib._jax", SimpleNamespace(PjitFunction=functools.partial))

    def train_jitted():
        clock.now += 0.005

    code = train_jitted.__code__
    traced = []

    def compiled():
        traced.append(train_jitted.__code__ is code)
        train_jitted()

    jitted = functools.update_wrapper(functools.partial(compiled), train_jitted)

    def step():
        jitted()
        clock.now += 0.01

    assert prove(clock, step, **{asked: ("train_jitted",)})["train_jitted"].value == pytest.approx(value)
    assert all(traced)
    before = clock.now
    jitted()
    assert clock.now - before == pytest.approx(0.005)


def test_a_relayed_generator_is_sent_and_thrown_and_returns_as_itself():
    heard = []

    @relays.relay
    def echo(first):
        try:
            heard.append((yield first))
            yield "second"
        except ValueError as error:
            heard.append(str(error))
            yield "caught"
        finally:
            heard.append("closed")
        return "end"

    made = echo("first")
    assert (next(made), made.send("sent"), made.throw(ValueError("thrown"))) == ("first", "second", "caught")
    with pytest.raises(StopIteration, match="end"):
        next(made)
    assert heard == ["sent", "thrown", "closed"]
    other = echo(1)
    next(other)
    other.close()
    assert heard[-1] == "closed"


COMPILED_FOR_AN_EPOCH = """
import tensorflow
from stepscope.capture.proving import changes

batches = tensorflow.data.Dataset.from_tensor_slices(tensorflow.range(12)).map(lambda each: (each, {"y": -each}))
iterator = iter(batches.batch(3))
step = tensorflow.function(lambda iterator: next(iterator)[1]["y"])
kept = changes.keep_batch(lambda epoch: (epoch, epoch, iterator), [])

print(step(iterator).numpy().tolist())
for at in range(3):
    print(step(kept(at)[2]).numpy().tolist())
print(step(iterator).numpy().tolist())
print(step.experimental_get_tracing_count())
"""


def test_a_step_that_is_compiled_for_an_epoch_runs_with_a_kept_batch(tmp_path):
    done = run_warm("tensorflow", ["-c", COMPILED_FOR_AN_EPOCH], tmp_path)
    kept = ["[-3, -4, -5]"] * 3
    assert done.stdout.splitlines() == ["[0, -1, -2]", *kept, "[-6, -7, -8]", "1"], done.stderr


def test_code_is_swapped_for_everyone_who_holds_a_function():
    kept = 5

    def add(one: int, two: int = 2, *, three: int = 3) -> int:
        return one + two + three + kept

    held = [add]
    undo = swap_code(add, lambda original: lambda *args, **named: -original(*args, **named))
    assert (held[0](1), add(1, three=0)) == (-11, -8)
    undo()
    assert held[0](1) == 11


def test_an_attribute_in_c_is_replaced_and_put_back(monkeypatch):
    class Base:
        """A class without attributes of its own."""

    Base.count = list.__len__

    class Child(Base):
        """Inherits `count`."""

    undo = swap_attribute(Child, "count", lambda original: lambda *args: original(*args) + 1)
    assert Child.count([1, 2]) == 3
    undo()
    assert "count" not in vars(Child)


def test_saves_after_an_ablation_do_not_reach_the_places_of_the_program(tmp_path, monkeypatch):
    import numpy

    target = tmp_path / "weights.npy"
    numpy.save(target, numpy.ones(2))
    undo = redirect()
    try:
        numpy.save(tmp_path / "new.npy", numpy.zeros(2))
        (tmp_path / "new.npy").replace(target)
        numpy.save(str(target), numpy.zeros(2))
    finally:
        undo()
    assert numpy.load(target).tolist() == [1, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["weights.npy"]


def test_a_function_in_which_a_step_ends_is_a_place(clock):
    """As one that calls `optimizer.step()`, with which steps of PyTorch end: it runs whenever blocks change."""
    experiment = Experiment(ProveOptions("job.py", at=("train_batch",)), lambda line: None, clock.perf_counter)
    running, start = experiment.run(), [0.0]
    next(running)

    def train_batch():
        clock.now += 0.01
        running.send([clock.now - start[0]])
        start[0] = clock.now

    with pytest.raises(StopIteration):
        while True:
            train_batch()
    assert experiment.proofs[0].value == pytest.approx(1)


def test_without_names_the_places_are_those_of_the_advice_and_of_the_account():
    overview = {
        "advice": [{"prove": "stepscope prove --ablate input --ablate data.py:load SCRIPT"}, {"prove": None}],
        "account": [
            {"culprit": {"file": "train.py", "name": "report() [2 calls]"}},
            {"culprit": {"file": None, "name": "aten::mm"}},
            {"culprit": None},
        ],
    }
    assert places_of(overview) == ("input", "data.py:load", "train.py:report")


def test_work_that_a_block_leaves_to_devices_counts_in_it(clock):
    """A step starts 8 ms of work on a device and reads its result; without reading it the host runs ahead."""
    free_at = [0.0]

    def read_result():
        clock.now = max(clock.now, free_at[0]) + 0.004

    def step():
        clock.now += 0.001
        free_at[0] = max(free_at[0], clock.now) + 0.008
        read_result()

    def wait():
        clock.now = max(clock.now, free_at[0])

    experiment = Experiment(
        ProveOptions("job.py", ablate=("read_result",)), lambda line: None, clock.perf_counter, wait=wait
    )
    running = experiment.run()
    next(running)
    with pytest.raises(StopIteration):
        while True:
            start = clock.now
            step()
            running.send([clock.now - start])
    assert experiment.proofs[0].value == pytest.approx(13 / 8, rel=0.02)


def test_arrays_of_jax_are_waited_for_also_after_one_that_is_gone(monkeypatch):
    waited = []

    def array(name, is_gone=False):
        def block_until_ready():
            if is_gone:
                raise RuntimeError("Array has been deleted")
            waited.append(name)

        return SimpleNamespace(block_until_ready=block_until_ready)

    arrays = [array("weights"), array("donated", is_gone=True), array("loss")]
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(live_arrays=lambda: arrays))
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    wait_for_devices()
    assert waited == ["weights", "loss"]


def test_a_wait_that_is_deferred_gets_what_the_step_before_would_have_waited_for():
    change, waited = changes.Defer(), []
    wait = change.wrap(waited.append)
    for step in ("first", "second", "third"):
        wait(step)
        change.next_step()

    assert waited == ["first", "first", "second"]
