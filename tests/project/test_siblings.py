"""What is tested on private profiles is tested on profiles that anyone has, too.

The corpus and the captured bottlenecks are not part of the project, so their tests skip for an outsider.  Each file of
tests has others beside them: on a drawn trace, or on a capture that the test run records itself.
"""

from __future__ import annotations

import ast
from pathlib import Path

from places import ROOT

TESTS = ROOT / "tests"
PRIVATE = {"corpus", "bottleneck_captures", "bottleneck_cases"}
# What they compare with the plugin's and HTA's figures is drawn in tests/analysis/ops and tests/analysis/workers.
ELSEWHERE = {"truth/test_torch_truth.py", "truth/test_parity_hta.py"}


def arguments_of(function: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in function.args.args}


def needs_private(path: Path) -> list[bool]:
    """Of each test of a file, whether it needs a private profile, itself or through fixtures of the file."""
    functions = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)]
    private = set(PRIVATE)
    fixtures = [each for each in functions if any("fixture" in ast.unparse(mark) for mark in each.decorator_list)]
    while more := {each.name for each in fixtures if arguments_of(each) & private} - private:
        private |= more
    return [bool(arguments_of(each) & private) for each in functions if each.name.startswith("test_")]


def test_no_file_tests_on_private_profiles_alone() -> None:
    needs = {path.relative_to(TESTS).as_posix(): needs_private(path) for path in TESTS.rglob("test_*.py")}

    assert sum(map(any, needs.values())) > 30
    assert {name for name, each in needs.items() if each and all(each)} == ELSEWHERE
