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
    "kernels": set(),
    "model": {"errors", "kernels"},
    "formats": {"errors", "model", "kernels"},
    "report": {"errors"},
    "analysis": {"errors", "model", "kernels", "report"},
    "cache": {"errors"},
    "capture": {"errors", "model", "formats"},
    "autostart": {"capture"},
    "client": {"capture"},
    "server": {"capture"},
    "keras": {"capture"},
    "lightning": {"capture"},
    "huggingface": {"capture"},
    "shelf": {"model"},
    "api": {"errors", "model", "formats", "report", "analysis", "cache", "shelf"},
    "stepscope": {"errors", "capture", "api"},
    "export": {"errors", "model", "kernels", "formats", "analysis"},
    "demo": {"errors", "capture"},
    "doctor": {"errors", "formats", "report", "analysis", "cache", "api"},
    "web": {
        "errors",
        "model",
        "kernels",
        "formats",
        "report",
        "analysis",
        "cache",
        "capture",
        "shelf",
        "api",
        "export",
    },
    "cli": {
        "errors",
        "export",
        "web",
        "doctor",
        "kernels",
        "model",
        "formats",
        "report",
        "analysis",
        "cache",
        "capture",
        "demo",
        "api",
        "stepscope",
    },
    "__main__": {"cli"},
}

# A third-party package that only some rooms may know, because it is heavy or because it belongs to one side.
CONFINED: dict[str, set[str]] = {
    "numba": {"kernels"},
    "fsspec": {"formats"},
    "google": {"capture"},
    "grpc": {"capture"},
    "typer": {"cli"},
    "rich": {"cli", "report"},
    "werkzeug": {"web"},
    "waitress": {"web"},
    "tensorboard": {"web"},
    "tensorflow": {"capture", "demo"},
    "keras": {"capture", "demo"},
    "jax": {"capture", "demo"},
    "torch": {"capture", "demo"},
}

# A constant, a group of entry points, and what is started as a program with `-m`.
NAMED_ONLY = {"stepscope.__version__", "stepscope.rules", "stepscope.autostart"}

# Whoever imports `stepscope` pays for none of these.
HEAVY = {"numba", "numpy", "pandas", "pyarrow", "fsspec", "google", "grpc", "msgspec", "typer", "rich"}
HEAVY |= {"tensorflow", "keras", "jax", "torch", "tensorboard", "werkzeug", "waitress"}

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
        elif isinstance(node, ast.Call) and (name := _imported_by_call(node)) and not _OURS_IN_TEXT.fullmatch(name):
            yield Import(module, node.lineno, name)


def _imported_by_call(node: ast.Call) -> str:
    """`fsspec.core` for `importlib.import_module("fsspec.core")`; empty for other calls."""
    function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if function != "import_module" or not node.args or not isinstance(node.args[0], ast.Constant):
        return ""
    return str(node.args[0].value)


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
    if found.target in NAMED_ONLY:
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
    ("analysis/steps.py", "from stepscope.formats import base", "analysis.steps:1", "stepscope.formats.base"),
    ("analysis/steps.py", "import stepscope.cli.main", "analysis.steps:1", "stepscope.cli.main"),
    ("analysis/steps.py", "from ..formats.base import F", "analysis.steps:1", "stepscope.formats.base.F"),
    ("analysis/steps.py", "from .. import cli", "analysis.steps:1", "stepscope.cli"),
    ("analysis/__init__.py", "from ..api import load", "analysis:1", "stepscope.api.load"),
    ("analysis/steps.py", "from stepscope import load", "analysis.steps:1", "stepscope.load"),
    ("model/trace.py", "def f():\n    from stepscope import formats", "model.trace:2", "stepscope.formats"),
    ("kernels/stats.py", "from stepscope.model import Stats", "kernels.stats:1", "stepscope.model.Stats"),
    ("errors.py", "if TYPE_CHECKING:\n    import stepscope.model", "errors:2", "stepscope.model"),
    ("cache.py", "load('stepscope.analysis.steps:run')", "cache:1", "stepscope.analysis.steps"),
    ("formats/kineto.py", "from numba import njit", "formats.kineto:1", "numba.njit"),
    ("analysis/steps.py", "import jax.numpy as jnp", "analysis.steps:1", "jax.numpy"),
    ("analysis/steps.py", "importlib.import_module('fsspec.core')", "analysis.steps:1", "fsspec.core"),
    ("analysis/steps.py", "import_module('stepscope.api')", "analysis.steps:1", "stepscope.api"),
]

GOOD_IMPORTS = [
    ("analysis/steps.py", "from stepscope.model import HostTrace\nfrom .overview import x\nimport numpy as np"),
    ("analysis/steps.py", '"""Like stepscope.formats, in a sentence."""'),
    ("cli/main.py", "from stepscope import load, __version__\nimport typer"),
    ("cache.py", "from stepscope import __version__"),
    ("kernels/wire/lines.py", "from numba import njit"),
    ("formats/store/remote.py", "import_module('fsspec.core')\nimport_module(name)"),
]


def package_with(folder: Path, name: str, text: str) -> Path:
    """A package `stepscope` with one module."""
    module = folder / "stepscope" / name
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(text)
    return folder / "stepscope"


@pytest.mark.parametrize(("name", "text", "place", "target"), BAD_IMPORTS)
def test_the_check_finds_a_forbidden_import(tmp_path, name, text, place, target):
    assert faults(package_with(tmp_path, name, text)) == [f"stepscope.{place} imports {target}"]


@pytest.mark.parametrize(("name", "text"), GOOD_IMPORTS)
def test_the_check_lets_an_allowed_import_pass(tmp_path, name, text):
    assert faults(package_with(tmp_path, name, text)) == []


def test_importing_stepscope_loads_nothing_heavy():
    script = "import sys; before = set(sys.modules); import stepscope; print(*set(sys.modules) - before)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert "stepscope" in loaded
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()
