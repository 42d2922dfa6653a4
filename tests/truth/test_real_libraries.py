"""Real libraries, captured in every way: whatever the way, a reader is told the same of the same program.

One process per library runs its loop once for each way, see `library_programs`; what is slow there is a sleep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import library_programs
import numpy as np
import pytest
from calm import contention_percent, is_calm, taking_a_turn
from program_runs import UNHURRIED, require_packages, run_command, run_warm

import stepscope
from stepscope.model import HostTrace

WAYS = ("run", "callback", "api", "own")


@dataclass(frozen=True)
class Expected:
    """What a reader should be told of a program.

    Attributes:
        needs: the packages that it uses.
        source: what `stepscope run` takes for a step.
        verdict, cause: of the summary, and the first cause of the account.
        advice: classes of which the first advice is one.
        function: the slow function, which the ways that sample the stack name.
        ways: those that there are for this library.
    """

    needs: tuple[str, ...]
    source: str
    verdict: str
    cause: str
    advice: tuple[str, ...]
    function: str = ""
    ways: tuple[str, ...] = WAYS


OPTIMIZER = "one per optimizer.step() of PyTorch"
NO_CALLBACK = ("run", "api", "own")
SLEEPING_INPUT = (
    "input_python",
    "input_no_prefetch",
)  # a function that sleeps: which of the two shows only where that was measured
LIBRARIES = {
    "lightning": Expected(
        ("lightning",), OPTIMIZER, "host_bound", "python", ("python_overhead",), "on_train_batch_end"
    ),
    "transformers": Expected(
        ("transformers", "accelerate"), OPTIMIZER, "input_bound", "input", SLEEPING_INPUT, "__getitem__"
    ),
    "accelerate": Expected(
        ("accelerate",), OPTIMIZER, "input_bound", "input", SLEEPING_INPUT, "__getitem__", NO_CALLBACK
    ),
    "closure": Expected(
        ("torch",), OPTIMIZER, "compute_bound", "host_compute", ("none", "host_sync"), "", NO_CALLBACK
    ),
    "compiled": Expected(("torch",), OPTIMIZER, "host_bound", "python", ("python_overhead",), "report", NO_CALLBACK),
    "flax": Expected(
        ("flax", "optax", "grain"), "one per call of the jitted function train_step", "input_bound", "input",
        ("input_preprocessing", "input_python"), "map", NO_CALLBACK,
    ),
    "distributed": Expected(("torch",), OPTIMIZER, "host_bound", "python", ("straggler",), "slow_part", NO_CALLBACK),
}  # fmt: skip

Found = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def program(library, tmp_path_factory) -> tuple[str, Found]:
    """What one library's program was told at its end, and the overview of each way's profile."""
    expected = LIBRARIES[library]
    require_packages(*expected.needs)
    with taking_a_turn():
        return record(library, tmp_path_factory.mktemp(library))


def record(library: str, folder: Path) -> tuple[str, Found]:
    """Runs one library's program below `folder`."""
    script = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] * (library == "distributed")
    options = ["--logdir", "run", "--steps", "6", "--skip", "3", *UNHURRIED, *script]
    words = ["-m", "stepscope", "run", *options, library_programs.__file__, library, str(folder)]
    # More threads than one would wait for processors that other tests use; a crash says where all threads were.
    environment = {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    if library == "distributed":  # the launcher starts Pythons of its own
        done = run_command(words, folder, environment)
    else:
        done = run_warm("jax" if library == "flax" else "torch", words, folder, environment)
    assert done.returncode == 0, done.stderr[-3000:]
    found = {way: overview_of(folder / way) for way in LIBRARIES[library].ways}
    waited = [float(path.read_text()) for path in folder.glob(f"{library_programs.OWN_WAITS}*")]
    found["own"]["account"].append({"cause": "contention", "percent": max(waited)})
    return done.stderr, found


def overview_of(logdir: Path) -> dict[str, Any]:
    """The overview of a session; of several ranks with the account of the last one, which is the slow one.

    The wait for processors is that of whichever rank waited longest: what one rank lacked, the other waits for.
    """
    profile = stepscope.load(logdir)
    found = dict(profile.overview().to_dict())
    accounts = [profile.overview(host=host).to_dict()["account"] for host in found["hosts"]]
    waited = max(contention_percent({"account": account}) for account in accounts)
    causes = [row for row in accounts[-1] if row["cause"] != "contention"]
    found["account"] = [*causes, {"cause": "contention", "percent": waited}]
    found["lacks_works"] = any(lacks_works(profile.trace(host)) for host in found["hosts"])
    return found


def lacks_works(trace: HostTrace) -> bool:
    """Whether fewer all-reduces of gloo were recorded than were asked for: it works on two threads, of which PyTorch's
    profiler sees only one now and then."""
    names = trace.strings.texts(trace.event_names(np.arange(len(trace.events))))
    return names.count("gloo:all_reduce") < names.count("c10d::allreduce_")


def what_is_recorded(expected: Expected, way: str) -> Expected:
    """What a way can tell: the library's own profiler records no stack, and of a thread of which it records nothing it
    is not known that it runs Python.  That one rank makes the others wait shows all the same."""
    if way != "own" or expected.cause != "python":
        return expected
    advice = tuple(each for each in expected.advice if each == "straggler") or ("none",)
    return replace(expected, cause="unknown", verdict="unknown", advice=advice)


def test_run_finds_the_steps_and_says_what_counts_as_one(program, library):
    said, _ = program

    assert f"captured steps 3-8 ({LIBRARIES[library].source})" in said


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_same_steps_verdict_and_first_cause(program, library, way):
    expected = LIBRARIES[library]
    if way not in expected.ways:
        pytest.skip(f"{library} has no {way}")
    overview = program[1][way]

    assert overview["steps_source"] == "markers"
    # JAX's own profiler is not told which steps to record, so it has all.
    assert overview["step_time_ms"]["count"] == (library_programs.STEPS if (library, way) == ("flax", "own") else 6)
    if overview["lacks_works"]:
        pytest.skip("PyTorch's profiler saw only one of gloo's threads: who waited for whom was not recorded")
    parts = {row["cause"]: row["percent"] for row in overview["account"] if row["cause"] != "contention"}
    if not is_calm(overview):
        assert what_is_recorded(expected, way).cause in [*parts][:2]
        return
    told = what_is_recorded(expected, way)
    assert next(iter(parts)) == told.cause
    assert parts[told.cause] > 0.7 * (100 - contention_percent(overview))
    assert overview["verdict"] == told.verdict
    first = overview["advice"][0]
    assert first["class"] in told.advice
    if told.cause == "unknown":  # then it is said how to know
        assert "with_stack=True" in "".join(first["actions"])


@pytest.mark.parametrize("way", ["run", "callback", "api"])
def test_the_function_that_is_slow_is_named_with_its_line(program, library, way):
    expected = LIBRARIES[library]
    if way not in expected.ways or not expected.function:
        pytest.skip(f"{library} has no {way}, or no slow function")
    _, found = program
    (culprit,) = (row["culprit"] for row in found[way]["account"] if row["cause"] == expected.cause)

    assert culprit["name"] == expected.function
    assert Path(culprit["file"]).name == "library_programs.py"
    lines = Path(library_programs.__file__).read_text().splitlines()
    assert lines[culprit["line"] - 1].lstrip().startswith(f"def {expected.function}(")
