"""What the programs of a series declare.

Whoever wrote `third_*.py` did not know the rules of the advice. Each of these programs has one planted bottleneck. Its
decorator declares the expected class, further acceptable classes, the culprit and the fix; the declarations are read
from the source, without importing a framework. Python calls are recorded in the half of a series that was drawn by
lot: `python=True`.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

FOLDER = Path(__file__).parent
FRAMEWORKS = ("tf", "jax", "torch")

_Function = TypeVar("_Function", bound=Callable[..., Any])


# The title of the section of each series; its programs stand in `NAME_tf.py`, `NAME_jax.py` and `NAME_torch.py`.
SERIES = {
    "third": "Programs of a third author, never looked at before the rules were final",
}


@dataclass(frozen=True)
class Run:
    """What a program gets: whether it is the slow variant, and the framework's mark around a step."""

    slow: bool
    mark: Callable[[int], Any]


@dataclass(frozen=True)
class Program:
    """A declaration. `culprits` are functions of the program's file or names of ops, any of which is right.

    `ablate` is what `stepscope prove` can leave out to measure the gain: a function of the program's file, or `input`.
    `lines` are the first and last lines of those functions; `lead` is the number of untimed steps that start a block,
    which use up what was prefetched while the other variant ran; with `has_python` Python calls are recorded.
    """

    series: str
    framework: str
    name: str
    expected: str
    also: tuple[str, ...]
    culprits: tuple[str, ...]
    fix: str
    ablate: str | None
    ranks: int
    lead: int
    has_python: bool
    lines: tuple[tuple[int, int], ...]

    @property
    def module(self) -> str:
        """The module that holds the program."""
        return f"{self.series}_{self.framework}"

    def is_culprit(self, name: str | None, file: str | None, line: int | None) -> bool:
        """Whether a reported culprit is the planted one: a line within its functions, or its name."""
        in_file = file is not None and Path(file).stem == self.module
        if in_file and line is not None and any(first <= line <= last for first, last in self.lines):
            return True
        return name is not None and any(culprit.rpartition(".")[2] in name for culprit in self.culprits)


def program(
    expected: str,
    *,
    culprits: tuple[str, ...],
    fix: str,
    also: tuple[str, ...] = (),
    ablate: str | None = None,
    ranks: int = 1,
    lead: int = 4,
    python: bool = False,
) -> Callable[[_Function], _Function]:
    """Declares a program; `read_declarations` reads the arguments from the source."""
    return lambda function: function


def list_programs(*names: str) -> Iterator[Program]:
    """The declarations of these series, or of all, in the order of the files."""
    for series, framework in itertools.product(names or SERIES, FRAMEWORKS):
        yield from read_declarations(series, framework, (FOLDER / f"{series}_{framework}.py").read_text("utf-8"))


def read_declarations(series: str, framework: str, source: str) -> Iterator[Program]:
    """The declarations in the source of one module."""
    tree = ast.parse(source)
    spans = dict(_find_functions(tree.body, ""))
    for node in tree.body:
        for decorator in getattr(node, "decorator_list", ()):
            if isinstance(node, ast.FunctionDef) and _is_declaration(decorator):
                yield _read_declaration((series, framework, node.name), decorator, spans)


def _is_declaration(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "program"


def _read_declaration(place: tuple[str, str, str], call: ast.Call, spans: dict[str, tuple[int, int]]) -> Program:
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    culprits = tuple(given["culprits"])
    return Program(
        *place,
        expected=ast.literal_eval(call.args[0]),
        also=tuple(given.get("also", ())),
        culprits=culprits,
        fix=given["fix"],
        ablate=given.get("ablate"),
        ranks=given.get("ranks", 1),
        lead=given.get("lead", 4),
        has_python=given.get("python", False),
        lines=tuple(spans[culprit] for culprit in culprits if culprit in spans),
    )


def _find_functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                yield prefix + node.name, (first, node.end_lineno or node.lineno)
            yield from _find_functions(node.body, f"{prefix}{node.name}.")
