"""Imports go one way.  The table below is the rule; the rest of this file holds the code against it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "stepscope"

# A room, and the rooms that its modules may import from besides their own.  "stepscope" is the public API in
# `stepscope/__init__.py`.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "model": {"errors"},
    "kernels": {"errors", "model"},
    "formats": {"errors", "model", "kernels"},
    "analysis": {"errors", "model", "kernels"},
    "cache": {"errors"},
    "capture": {"errors", "model", "formats"},
    "api": {"errors", "model", "formats", "analysis", "cache"},
    "stepscope": {"errors", "capture", "api"},
    "cli": {"errors", "model", "formats", "analysis", "cache", "capture", "api", "stepscope"},
}

# A third-party package that only some rooms may know, because it is heavy or because it belongs to one side.
CONFINED: dict[str, set[str]] = {
    "numba": {"kernels"},
    "fsspec": {"formats"},
    "typer": {"cli"},
    "tensorflow": {"capture", "cli"},
    "keras": {"capture", "cli"},
    "jax": {"capture", "cli"},
    "torch": {"capture", "cli"},
}

# Whoever imports `stepscope` pays for none of these.
HEAVY = {"numba", "pyarrow", "numpy", "pandas", "fsspec", "msgspec", "typer", "rich", "tensorflow", "keras", "jax", "torch"}

_OURS_IN_TEXT = re.compile(r"stepscope(\.\w+)+(:\w+)?")


@dataclass(frozen=True)
class Import:
    """One import: who, on which line, of what (dotted)."""

    module: str
    line: int
    target: str


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module of a package."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports_of(module: str, path: Path) -> Iterator[Import]:
    """Every import of a module, wherever it stands.

    Imports inside functions count, and so do those under TYPE_CHECKING: a type of an upper room in a signature is
    knowledge of that room.  A text such as "stepscope.formats.kineto:read" counts too, since it is how modules are
    named that are to be loaded later.
    """
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(module, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(package, node)
            yield from (Import(module, node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _OURS_IN_TEXT.fullmatch(node.value):
            yield Import(module, node.lineno, node.value.partition(":")[0])


def _base(package: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parents, node.module] if node.module else parents)


def room_of(target: str) -> str:
    """The room of a dotted name of ours: its second part if that is a room, else the public API."""
    parts = target.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ALLOWED else "stepscope"


def faults(package: Path) -> list[str]:
    """Every import that the tables forbid, as `module:line imports target`."""
    return [
        f"{found.module}:{found.line} imports {found.target}"
        for module, path in modules(package)
        for found in imports_of(module, path)
        if not is_allowed(found)
    ]


def is_allowed(found: Import) -> bool:
    """True if the tables have nothing against an import."""
    room, top = room_of(found.module), found.target.partition(".")[0]
    if top != "stepscope":
        return room in CONFINED.get(top, {room})
    if found.target == "stepscope.__version__":  # a constant, no knowledge of anything above
        return True
    return room_of(found.target) in ALLOWED[room] | {room}


def test_every_import_goes_in_an_allowed_direction():
    assert faults(PACKAGE) == []


def test_every_module_lies_in_a_room_of_the_table():
    rooms = {path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    rooms |= {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}

    assert rooms <= set(ALLOWED)


def test_the_table_has_no_circle():
    done: set[str] = set()
    while ready := {room for room, below in ALLOWED.items() if room not in done and below <= done}:
        done |= ready

    assert done == set(ALLOWED)


BAD_IMPORTS = [
    ("analysis/steps.py", "from stepscope.formats import base", "stepscope.analysis.steps:1 imports stepscope.formats.base"),
    ("analysis/steps.py", "import stepscope.cli.main", "stepscope.analysis.steps:1 imports stepscope.cli.main"),
    ("analysis/steps.py", "from ..formats.base import F", "stepscope.analysis.steps:1 imports stepscope.formats.base.F"),
    ("analysis/steps.py", "from .. import cli", "stepscope.analysis.steps:1 imports stepscope.cli"),
    ("analysis/__init__.py", "from ..api import load", "stepscope.analysis:1 imports stepscope.api.load"),
    ("analysis/steps.py", "from stepscope import load", "stepscope.analysis.steps:1 imports stepscope.load"),
    ("model/trace.py", "def f():\n    from stepscope import kernels", "stepscope.model.trace:2 imports stepscope.kernels"),
    ("errors.py", "if TYPE_CHECKING:\n    import stepscope.model", "stepscope.errors:2 imports stepscope.model"),
    ("cache.py", "load('stepscope.analysis.steps:run')", "stepscope.cache:1 imports stepscope.analysis.steps"),
    ("formats/kineto.py", "from numba import njit", "stepscope.formats.kineto:1 imports numba.njit"),
    ("analysis/steps.py", "import jax.numpy as jnp", "stepscope.analysis.steps:1 imports jax.numpy"),
]

GOOD_IMPORTS = [
    ("analysis/steps.py", "from stepscope.model import HostTrace\nfrom .overview import x\nimport numpy as np"),
    ("analysis/steps.py", '"""Like stepscope.formats, in a sentence."""'),
    ("cli/main.py", "from stepscope import load, __version__\nimport typer"),
    ("cache.py", "from stepscope import __version__"),
    ("kernels/wire.py", "from numba import njit"),
]


def package_with(folder: Path, name: str, text: str) -> Path:
    """A package `stepscope` with one module."""
    module = folder / "stepscope" / name
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(text)
    return folder / "stepscope"


@pytest.mark.parametrize(("name", "text", "fault"), BAD_IMPORTS)
def test_the_check_finds_a_forbidden_import(tmp_path, name, text, fault):
    assert faults(package_with(tmp_path, name, text)) == [fault]


@pytest.mark.parametrize(("name", "text"), GOOD_IMPORTS)
def test_the_check_lets_an_allowed_import_pass(tmp_path, name, text):
    assert faults(package_with(tmp_path, name, text)) == []


def test_importing_stepscope_loads_nothing_heavy():
    script = "import sys; before = set(sys.modules); import stepscope; print(*set(sys.modules) - before)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert "stepscope" in loaded
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()
