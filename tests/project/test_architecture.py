"""Imports go one way.  The table below is the rule; the rest of this file holds the code against it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from imports import PACKAGE, Import, imports_of, modules

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.registry import TOOLS

# A room, and the rooms that its modules may import from besides their own.  "stepscope" is the public API in
# `stepscope/__init__.py`.
ALLOWED: dict[str, set[str]] = {
    "records": set(),
    "errors": set(),
    "kernels": set(),
    "plugins": set(),
    "model": {"errors", "kernels"},
    "vocabulary": {"model"},
    "formats": {"errors", "model", "kernels", "plugins", "vocabulary"},
    "report": {"errors", "model"},
    "analysis": {"errors", "model", "kernels", "plugins", "proof", "report", "vocabulary"},
    "private_folders": set(),
    "cache": {"errors", "formats", "private_folders"},
    "children": set(),
    "engines": {"errors", "model", "kernels", "formats", "analysis", "cache", "children", "meanwhile", "shelf"},
    "switching": {"kernels"},
    "proof": {"errors"},
    "capture": {"errors", "model", "formats", "kernels", "children", "private_folders", "proof", "switching"},
    "autostart": {"capture"},
    "client": {"capture"},
    "server": {"capture"},
    "keras": {"capture"},
    "lightning": {"capture"},
    "huggingface": {"capture"},
    "shelf": {"model"},
    "meanwhile": set(),
    "sql": {"errors", "model", "kernels", "report", "analysis", "children"},
    "api": {
        "errors",
        "model",
        "formats",
        "report",
        "analysis",
        "cache",
        "engines",
        "meanwhile",
        "proof",
        "shelf",
        "sql",
    },
    "budgets": {"errors", "report", "analysis", "formats", "capture", "api", "shelf"},
    "runs": {"errors", "report", "analysis", "formats", "api", "budgets", "sql"},
    "notebook": {"errors", "model", "report", "analysis", "capture", "api", "vocabulary", "web"},
    "stepscope": {"errors", "capture", "api", "budgets", "notebook"},
    "export": {"errors", "model", "kernels", "formats", "analysis", "plugins", "vocabulary"},
    "pictures": {"errors", "model", "report", "analysis"},
    "agents": {"errors", "model", "report", "analysis", "formats", "cache", "shelf", "api", "pictures", "sql"},
    "sheets": {"errors", "report", "analysis", "api", "pictures", "vocabulary", "web"},
    "demo": {"errors", "capture"},
    "program_source": set(),
    "doctor": {"errors", "formats", "report", "analysis", "cache", "api", "plugins", "export"},
    "overtime": {"errors", "model", "formats", "report", "analysis", "api"},
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
        "switching",
        "api",
        "sql",
        "overtime",
        "export",
        "runs",
        "program_source",
        "vocabulary",
    },
    "cli": {
        "errors",
        "export",
        "web",
        "doctor",
        "overtime",
        "kernels",
        "model",
        "formats",
        "report",
        "analysis",
        "cache",
        "engines",
        "capture",
        "proof",
        "demo",
        "api",
        "budgets",
        "runs",
        "shelf",
        "private_folders",
        "program_source",
        "agents",
        "sheets",
        "plugins",
        "sql",
        "stepscope",
    },
    "__main__": {"cli"},
}

# A room that every other may import from: `dataclass`, quicker to import.
COMMON = {"records"}

# A wing of `analysis/`, and the wings that its modules may import from besides their own.  The registry belongs to
# none: it names tools by text, and they are imported on first use.
WINGS: dict[str, set[str]] = {
    "hlo": set(),
    "trace": {"hlo"},
    "steps": {"trace"},
    "ops": {"trace", "steps", "account"},  # the lines that samples show
    "input": {"trace", "steps", "account"},
    "resources": {"trace", "steps"},
    "workers": {"trace", "steps", "account"},
    "waits": {"trace", "steps", "account", "ops"},
    "timeline": {"trace", "steps", "resources"},
    "xla": {"hlo", "trace", "steps"},
    "account": {"trace", "steps"},
    "purpose": {"hlo", "trace", "steps", "account"},
    "facts": {"hlo", "trace", "steps", "account", "purpose", "workers", "resources"},
    "advice": {"trace", "steps", "account", "purpose", "facts", "ops", "input", "resources", "workers", "waits"},
    "trust": {"trace", "steps", "account", "workers"},
    "overview": {"trace", "steps", "ops", "account", "facts", "advice", "resources"},
    "compare": {"trace", "account", "overview"},
    "gate": {"compare", "overview"},
}

# A third-party package that only some rooms may know, because it is heavy or because it belongs to one side.
CONFINED: dict[str, set[str]] = {
    "duckdb": {"sql"},
    "fsspec": {"formats"},
    "google": {"capture"},
    "grpc": {"capture"},
    "rich": {"cli", "report"},
    "werkzeug": {"web"},
    "waitress": {"web"},
    "mcp": {"agents"},
    "anywidget": {"notebook"},
    "traitlets": {"notebook"},
    "IPython": {"notebook"},
    "uvicorn": {"cli"},
    "PIL": {"pictures"},
    "ray": {"engines"},
    "distributed": {"engines"},
    "tensorboard": {"capture", "web"},
    "tensorflow": {"capture", "demo"},
    "keras": {"capture", "demo"},
    "jax": {"capture", "demo"},
    "torch": {"capture", "demo"},
}

# A constant, groups of entry points, a label of metrics, and what is started as a program with `-m`.
NAMED_ONLY = {"stepscope.__version__", "stepscope.rules", "stepscope.exports", "stepscope.tools", "stepscope.run"}
NAMED_ONLY |= {"stepscope.autostart", "stepscope.overtime.slow_step"}

# The most lines of Python that a room, or a wing of `analysis/`, may have: what it had on 1 December 2026 and a tenth,
# so that a mend is written plainly and not squeezed in.  Whoever makes a room smaller lowers its number.
MOST_LINES: dict[str, int] = {
    "capture": 24_020,  # arrays that stay as they are; what stays in memory; rows filled up, zero gradients
    "formats": 14_370,  # samples of processors, and what Nsight Systems says of itself
    "account": 11_440,  # what the first change is about; the step that stands for others; long steps that come again
    "web": 5_470,
    "xla": 5_260,
    "workers": 5_400,
    "advice": 8_590,  # what to look at where nothing is known; what classes say, with titles; input on full processors
    "cli": 4_260,  # 387 of them answer from memory
    "facts": 5_300,  # buffers that are sent; what threads take of too few processors; a function of 67 lines is four
    "steps": 5_010,  # requests that threads handle side by side are no steps
    "trace": 4_580,  # what a trace says of devices; remedies by who recorded; what arrays hold; the events of each kind
    "ops": 2_640,
    "sql": 2_740,
    "vocabulary": 4_090,  # what accelerators lack; frames of compiled code, and kinds of computing
    "report": 3_240,
    "input": 2_420,
    "resources": 2_360,
    "engines": 2_290,
    "timeline": 2_070,
    "overview": 1_590,
    "model": 1_640,  # rows of a table are numbered without sorting
    "compare": 1_700,  # one step above the median one; what changed, with its line; what is not like for like
    "export": 1_100,
    "hlo": 1_230,
    "waits": 1_120,
    "gate": 1_040,
    "agents": 1_020,
    "purpose": 7_490,  # what programs compute for nothing; what operands and kept tensors show; gradients; padding
    "proof": 830,
    "api": 860,
    "overtime": 620,
    "notebook": 320,
    "sheets": 250,
    "trust": 790,
    "pictures": 290,
}
MOST_LINES_ELSEWHERE = 700
MOST_COMPILED_LINES = 12_300  # the account: pieces, causes, queues

CAPTURE_ROOMS = {path.stem for path in (PACKAGE / "capture").iterdir() if path.suffix == ".py" or path.is_dir()}
CAPTURE_ROOMS -= {"__init__", "__pycache__"}

# Whoever imports `stepscope` pays for none of these.
HEAVY = {"numpy", "duckdb", "pandas", "pyarrow", "fsspec", "google", "grpc", "msgspec", "rich"}
HEAVY |= {"ray", "dask", "distributed", "tensorflow", "keras", "jax", "torch", "tensorboard", "werkzeug", "waitress"}


def room_of(target: str) -> str:
    """The room of a dotted name of ours: its second part if that is a room, else the public API."""
    parts = target.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ALLOWED else "stepscope"


def wing_of(module: str) -> str:
    """The wing of a dotted name in `analysis/`; empty for the registry and for other rooms."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["analysis"] and len(parts) > 2 and parts[2] in WINGS else ""


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
    return room_of(found.target) in ALLOWED[room] | COMMON | {room} and is_allowed_between_wings(found)


def is_allowed_between_wings(found: Import) -> bool:
    """True unless both ends lie in wings and the arrow between these is not in the table."""
    wing, target = wing_of(found.module), wing_of(found.target)
    return not wing or not target or target in WINGS[wing] | {wing}


def test_every_import_goes_in_an_allowed_direction():
    assert faults(PACKAGE) == []


def test_every_dataclass_is_one_that_is_quick_to_import():
    late = ["stepscope.records", "stepscope.capture.remote.addresses"]  # the latter has an order, which ours cannot

    slow = {
        module
        for module, path in modules(PACKAGE)
        for found in imports_of(module, path)
        if found.target == "dataclasses.dataclass" and module not in late
    }

    assert slow == set()


def test_a_name_stands_for_one_public_class():
    """But for the callback of each framework, which a program imports by the framework's name."""
    names = [
        node.name
        for _, path in modules(PACKAGE)
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]

    assert {name for name in names if names.count(name) > 1} == {"ProfilerCallback"}


def test_every_module_lies_in_a_room_of_the_table():
    rooms = {path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    rooms |= {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}

    assert rooms <= set(ALLOWED)


@pytest.mark.parametrize("table", [ALLOWED, WINGS], ids=["rooms", "wings"])
def test_the_table_has_no_circle(table):
    assert in_circles(table) == set()


def files_in_circles(package: Path) -> set[str]:
    """The modules that import each other, directly or through others, or import one that does.

    A registry that names modules by text does not count, nor does `from stepscope import __version__`, a constant; a
    native module belongs to the package that it lies in.
    """
    names = {module for module, _ in modules(package)}
    below: dict[str, set[str]] = {}
    for module, path in modules(package):
        found = [each for each in imports_of(module, path) if not each.is_text]
        targets = {each.target for each in found if each.target not in NAMED_ONLY}
        parents = {module, module.rpartition(".")[0]}
        below[module] = {name for each in targets if (name := _module_of(each, names))} - parents
    return in_circles(below)


def in_circles(below: Mapping[Any, set[Any]]) -> set[Any]:
    """What leads back to itself, or to what does, by what each thing stands on."""
    done: set[Any] = set()
    while ready := {each for each, targets in below.items() if each not in done and targets <= done}:
        done |= ready
    return set(below) - done


def _module_of(target: str, names: set[str]) -> str:
    """The module that a dotted name lies in; empty for one of another package."""
    while target and target not in names:
        target = target.rpartition(".")[0]
    return target


def test_no_files_import_each_other():
    assert files_in_circles(PACKAGE) == set()


def test_no_rooms_of_the_capture_import_each_other():
    """A room is a file in `capture/`, or a folder: what is recorded lies below what decides when to record."""
    below: dict[str, set[str]] = {room: set() for room in CAPTURE_ROOMS}
    for module, path in modules(PACKAGE):
        if module.startswith("stepscope.capture."):
            found = [each.target.split(".") for each in imports_of(module, path) if not each.is_text]
            rooms = {each[2] for each in found if each[:2] == ["stepscope", "capture"] and len(each) > 2}
            room = module.split(".")[2]
            below[room] |= (rooms & CAPTURE_ROOMS) - {room}

    assert in_circles(below) == set()


def test_no_files_of_the_page_import_each_other():
    folder = PACKAGE.parents[1] / "frontend" / "src"
    files = {path.with_suffix(""): path for path in folder.rglob("*") if path.suffix in (".ts", ".tsx")}
    below: dict[Path, set[Path]] = {}
    for name, path in files.items():
        named = re.findall(r'^(?:import|export|\}) [^;]*?from "(\.[^"]*)"', path.read_text("utf-8"), re.MULTILINE)
        below[name] = {Path(os.path.normpath(path.parent / each)) for each in named} & set(files)

    assert len(files) > 100
    assert in_circles(below) == set()


def test_the_check_finds_files_that_import_each_other(tmp_path):
    package = package_with(tmp_path, "model/trace.py", "def f():\n    from stepscope.model.tables import Table")
    package_with(tmp_path, "model/tables.py", "from stepscope.model.trace import Trace")
    package_with(tmp_path, "model/kinds.py", "from stepscope.records import dataclass")

    assert files_in_circles(package) == {"stepscope.model.trace", "stepscope.model.tables"}


def test_every_module_of_the_analysis_lies_in_a_wing_of_the_table():
    folder = PACKAGE / "analysis"

    assert {path.name for path in folder.iterdir() if any(path.glob("*.py"))} == set(WINGS)
    assert {path.name for path in folder.glob("*.py")} == {"__init__.py", "registry.py"}


def test_every_allowed_arrow_between_wings_is_used():
    """An arrow that nobody needs is taken out of the table, so that it cannot come back unseen."""
    used: dict[str, set[str]] = {wing: set() for wing in WINGS}
    for module, path in modules(PACKAGE):
        for found in imports_of(module, path) if wing_of(module) else ():
            used[wing_of(module)] |= {wing_of(found.target)} - {"", wing_of(module)}

    assert used == WINGS


def tables_of_causes(package: Path) -> dict[str, int]:
    """How many tables of each file say something of most causes of the account."""
    names = {cause.name.lower() for cause in Cause}
    found: dict[str, int] = {}
    for _, path in modules(package):
        dicts = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Dict)]
        keys = [{_last_name(key) for key in node.keys if key is not None} for node in dicts]
        many = sum(2 * len(each & names) >= len(names) for each in keys)
        found |= {str(path.relative_to(package)): many} if many else {}
    return found


def _last_name(key: ast.expr) -> str:
    """`input` of "input" and of Cause.INPUT."""
    return str(getattr(key, "value", "") if isinstance(key, ast.Constant) else getattr(key, "attr", "")).lower()


def test_one_table_says_what_is_said_of_a_cause_and_one_its_colour():
    assert tables_of_causes(PACKAGE) == {"analysis/account/causes.py": 1, "report/palette.py": 1}


def test_one_object_decides_which_steps_are_the_loop():
    made = [
        module
        for module, path in modules(PACKAGE)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "StepLoop"
    ]

    assert made == ["stepscope.capture.steps.finding"]


def test_a_tool_is_told_from_a_helper_by_its_name():
    tools = {tool.module.rpartition(".")[2] for tool in TOOLS}

    assert {path.stem for path in (PACKAGE / "analysis").rglob("*_tool.py")} == tools


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
    ("cache.py", "load('stepscope.analysis.steps.steps_tool:run')", "cache:1", "stepscope.analysis.steps.steps_tool"),
    ("analysis/steps.py", "from google import protobuf", "analysis.steps:1", "google.protobuf"),
    ("analysis/steps.py", "import jax.numpy as jnp", "analysis.steps:1", "jax.numpy"),
    (
        "analysis/trace/spans.py",
        "from stepscope.analysis.steps import verdict",
        "analysis.trace.spans:1",
        "stepscope.analysis.steps.verdict",
    ),
    ("analysis/steps.py", "importlib.import_module('fsspec.core')", "analysis.steps:1", "fsspec.core"),
    ("analysis/steps.py", "import_module('stepscope.api')", "analysis.steps:1", "stepscope.api"),
]

GOOD_IMPORTS = [
    ("analysis/overview/a.py", "from stepscope.model import HostTrace\nfrom ..steps import x\nimport numpy as np"),
    ("analysis/steps.py", '"""Like stepscope.formats, in a sentence."""'),
    ("cli/main.py", "from stepscope import load, __version__\nimport rich"),
    ("cache.py", "from stepscope import __version__"),
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


def lines_by_room(package: Path) -> dict[str, int]:
    """How many lines the modules of each room have together; the wings of `analysis/` count by themselves."""
    lines: dict[str, int] = {}
    for module, path in modules(package):
        room = wing_of(module) or room_of(module)
        lines[room] = lines.get(room, 0) + len(path.read_text(encoding="utf-8").splitlines())
    return lines


def test_no_room_grows():
    lines = lines_by_room(PACKAGE)

    assert {room: n for room, n in lines.items() if n > MOST_LINES.get(room, MOST_LINES_ELSEWHERE)} == {}
    assert set(MOST_LINES) <= set(lines)


def test_the_compiled_loops_do_not_grow():
    files = [path for path in (PACKAGE / "kernels").rglob("*") if path.suffix in (".pyx", ".pxd")]

    assert 0 < sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= MOST_COMPILED_LINES


def test_lines_are_counted_by_room(tmp_path):
    package = package_with(tmp_path, "analysis/steps/verdict.py", "one = 1\ntwo = 2\n")
    package_with(tmp_path, "model/kinds.py", "three = 3\n")

    assert lines_by_room(package) == {"steps": 2, "model": 1}


def test_importing_stepscope_loads_nothing_heavy():
    script = "import sys; before = set(sys.modules); import stepscope; print(*set(sys.modules) - before)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert "stepscope" in loaded
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()
