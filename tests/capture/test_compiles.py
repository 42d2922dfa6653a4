"""What TensorFlow traces and PyTorch compiles again: which argument changed, of which function, and what that cost."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import compile_programs
import pytest
from program_runs import UNHURRIED, profiles_below, require_packages, run_warm

import stepscope
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.compiles import CompilesTracer, find_changes
from stepscope.capture.tracers.dynamo import parse_reason

CHANGES = [
    ("shape", "4,2", "5,2"),
    ("shape", "5,2", "6,2"),
    ("shape", "6,2", "7,2"),
]
EXPECTED = {
    "tensorflow": [
        *((kind, "batch['x']", f"float32[{before}]", f"float32[{after}]") for kind, before, after in CHANGES),
        ("value", "rate", "0.5", "1.5"),
        ("value", "rate", "1.5", "2.5"),
    ],
    "torch": [
        *((kind, "x", f"float32[{before}]", f"float32[{after}]") for kind, before, after in CHANGES),
        ("value", "rate", "2", "3"),
        ("value", "rate", "3", "4"),
    ],
}
FUNCTIONS = {"tensorflow": "tf_step", "torch": "torch_step"}


@pytest.fixture(scope="module", params=EXPECTED)
def framework(request) -> str:
    require_packages(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def profile(framework, tmp_path_factory) -> Path:
    """The profile of all steps of a program but the first."""
    folder = tmp_path_factory.mktemp(framework)
    options = ["--skip", "1", "--steps", str(compile_programs.STEPS - 1), "--logdir", "logs", *UNHURRIED]
    done = run_warm(framework, ["-m", "stepscope", "run", "-q", *options, compile_programs.__file__, framework], folder)
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = profiles_below(folder / "logs")
    return path


def line_of(text: str) -> int:
    """The line of a program's text, from 1."""
    lines = Path(compile_programs.__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_the_argument_that_changed_is_named_with_its_shapes_and_values(profile, framework):
    report = stepscope.load(profile).hlo_stats().to_dict()
    own = [row for row in report["compilations"] if row["function"] == FUNCTIONS[framework]]

    assert [(row["changed"], row["argument"], row["before"], row["after"]) for row in own] == EXPECTED[framework]
    assert [row["step"] for row in own] == [1, 2, 3, 4, 5]
    assert all(row["total_ms"] >= row["lower_ms"] > 0 for row in own)
    # A decorated function starts at its first decorator.
    assert {row["place"] for row in own} == {f"{compile_programs.__file__}:{line_of(DECORATORS[framework])}"}


DECORATORS = {"tensorflow": "@tf.function", "torch": "@torch.compile"}


def test_a_function_is_a_row_with_its_cost(profile, framework):
    rows = {row["function"]: row for row in stepscope.load(profile).hlo_stats().to_dict()["compiled"]}
    row = rows[FUNCTIONS[framework]]

    assert row["compilations"] == compile_programs.STEPS - 1
    assert row["argument"] == EXPECTED[framework][0][1]
    assert row["shapes"].startswith("float32[4,2], float32[5,2], float32[6,2]")


def test_the_advice_says_what_changes_and_where(profile, framework):
    found = stepscope.load(profile).advice().to_dict()["advice"]
    file = Path(compile_programs.__file__).name
    places = {name: f"{file}:{line_of(text)}" for name, text in DECORATORS.items()}
    # Which of the two functions of TensorFlow, or arguments of PyTorch, costs more depends on the machine.
    expected = {
        "torch": (
            f"argument x of torch_step ({places['torch']}) changes: float32[4,2], then float32[5,2]",
            f"argument rate of torch_step ({places['torch']}) changes: ",
        ),
        "tensorflow": (
            f"argument batch['x'] of tf_step ({places['tensorflow']}) changes: float32[4,2], then float32[5,2]",
            f"argument rate of tf_step ({places['tensorflow']}) changes: 0.5, then 1.5",
            f"made_anew ({file}:{line_of('def made_anew')}) is defined anew each time",
        ),
    }
    assert any(text in each["evidence"] for each in found for text in expected[framework]), found


def test_a_static_argument_of_jax_is_named(tmp_path):
    require_packages("jax")
    options = ["--skip", "1", "--steps", str(compile_programs.STEPS - 1), "--logdir", "logs", *UNHURRIED]
    done = run_warm("jax", ["-m", "stepscope", "run", "-q", *options, compile_programs.__file__, "jax"], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = profiles_below(tmp_path / "logs")
    first = stepscope.load(path).advice().to_dict()["advice"][0]
    where = f"jax_step ({Path(compile_programs.__file__).name}:{line_of('@functools.partial(jax.jit')})"

    assert f"argument rate of {where} changes: 1.0, then 2.0" in first["evidence"]
    assert first["actions"][0].startswith(f"drop `rate` from static_argnums, or static_argnames, of {where}")


def test_a_function_that_is_made_again_is_called_so(profile, framework):
    if framework != "tensorflow":
        pytest.skip("only TensorFlow's program makes one")
    report = stepscope.load(profile).hlo_stats().to_dict()
    changed = [row["changed"] for row in report["compilations"] if row["function"] == "made_anew"]
    assert changed == ["first", *["function"] * 4]


@pytest.mark.parametrize(
    ("reason", "arguments", "expected"),
    [
        (
            "0/2: tensor 'x' size mismatch at index 1. expected 3, actual 4",
            {"x": SimpleNamespace(shape=(2, 4), dtype="torch.float32")},
            ("x", "float32[2,3]", "float32[2,4]"),
        ),
        ("tensor 'L['x']' dtype mismatch. expected Float, actual Double", {}, ("x", "dtype Float", "dtype Double")),
        ("0/0: L['self'].rate == 0.5", {"self": SimpleNamespace(rate=0.25)}, ("self.rate", "0.5", "0.25")),
        ("0/0: L['batch']['n'] == 2  # x = f(batch)", {"batch": {"n": 5}}, ("batch['n']", "2", "5")),
        ("0/0: len(L['xs']) == 2", {"xs": [1, 2, 3]}, ("len(xs)", "2", "3")),
        ("0/0: n == 2", {"n": object()}, ("n", "2", "")),
        ("0/0: ___check_type_id(L['n'], 94)", {"n": 1}, ("___check_type_id(L['n'], 94)", "", "")),
        ("0/0: L['missing']['n'] == 2", {}, ("missing['n']", "2", "")),
        ("", {}, None),
    ],
)
def test_a_failed_guard_is_taken_apart(reason: str, arguments: dict[str, Any], expected: object):
    assert parse_reason(reason, arguments) == expected


class Loud:
    """An argument whose attributes run code, which no note may do."""

    @property
    def rate(self) -> float:
        raise AssertionError("the program's code was run")


def test_looking_up_an_argument_runs_no_code_of_the_program():
    assert parse_reason("0/0: L['self'].rate == 0.5", {"self": Loud()}) == ("self.rate", "0.5", "")


def test_arguments_that_come_and_go_are_changes():
    assert find_changes({"a": "1", "b": "2"}, {"b": "2", "c": "3"}) == (("c", "", "3"), ("a", "1", ""))


TRACING = "tensorflow.python.eager.polymorphic_function.tracing_compilation"


def test_another_release_of_a_framework_is_left_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, TRACING, ModuleType("renamed"))
    monkeypatch.delitem(sys.modules, "torch._dynamo.convert_frame", raising=False)
    tracer = CompilesTracer()
    tracer.start(ProfilerOptions(), lambda: 0)
    tracer.stop()
    assert tracer.drain() == []


def test_the_watched_function_is_put_back_and_still_raises(monkeypatch):
    def fail(*_: object) -> None:
        raise ValueError("the program's own error")

    module: Any = ModuleType("tracing")
    module._create_concrete_function = fail
    monkeypatch.setitem(sys.modules, TRACING, module)
    monkeypatch.delitem(sys.modules, "torch._dynamo.convert_frame", raising=False)
    tracer = CompilesTracer()
    tracer.start(ProfilerOptions(), lambda: 0)
    with pytest.raises(ValueError, match="own error"):
        module._create_concrete_function(None, None, None, None)
    tracer.stop()
    assert module._create_concrete_function is fail
    assert tracer.drain() == []
