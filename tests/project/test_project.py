"""The project's own frame: set-up on a fresh machine, what CI runs, versions and dependencies."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from imports import PACKAGE, imports_of, modules
from places import ROOT
from scheduling import IN_TURNS, LONGEST_FIRST

import bootstrap
import frontend
import native

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


FRAMEWORK = re.compile(
    r"(?m)^(?:\w+ = )?(?:pytest\.importorskip\(\W|import |from )(?:torch|jax|tensorflow|keras|ray)\b"
)


def test_collecting_the_tests_imports_no_framework():
    """Each worker collects all of them: what one file imports, all that others test is slowed down by."""
    files = [path for path in (ROOT / "tests").glob("*/**/test_*.py") if "same" not in path.parts]
    assert len(files) > 250
    texts = {path.name: text for path in files if FRAMEWORK.search(text := path.read_text("utf-8"))}
    # Programs stand in the files as texts.
    at_the_top = {name: [ast.unparse(each) for each in ast.parse(text).body] for name, text in texts.items()}
    assert [name for name, lines in at_the_top.items() if any(map(FRAMEWORK.match, lines))] == []


# -- set-up ------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose .venv has a Python that writes down what pip is asked to install."""
    facts = json.dumps({"version": [3, 12, 1], "missing": []})
    script(
        tmp_path / ".venv" / "bin" / "python",
        f'case "$1" in -c) echo \'{facts}\';; *) echo "$*" >> {tmp_path}/calls;; esac\n',
    )
    (tmp_path / "pyproject.toml").write_text("one")
    return tmp_path


def test_set_up_installs_what_a_purpose_needs_and_again_when_something_changed(checkout, monkeypatch):
    monkeypatch.setattr(frontend, "node_of_machine", lambda: frontend.Node("node", ["npm"]))
    asked = [bootstrap.set_up(purpose, None, checkout) for purpose in ("demo", "demo", "test", "demo", "lint", "bench")]
    (checkout / "pyproject.toml").write_text("two")

    assert asked == [True, False, True, False, False, True]
    assert bootstrap.set_up("demo", None, checkout) is True
    calls = (checkout / "calls").read_text().splitlines()
    assert [call.partition(f"--editable {checkout}")[2] for call in calls] == [
        "[mcp]", "[dev,docs,mcp,test]", "[bench,dev,docs,mcp,test]", "[mcp]"
    ]  # fmt: skip


def test_the_licenses_of_what_the_page_is_made_from_come_with_it(tmp_path):
    module = tmp_path / "frontend" / "node_modules" / "chart"
    module.mkdir(parents=True)
    packages = {
        "": {},
        "node_modules/chart": {"version": "1.2.0", "license": "MIT"},
        "node_modules/test": {"dev": True},
    }
    (tmp_path / "frontend" / "package-lock.json").write_text(json.dumps({"packages": packages}))
    frontend.output(tmp_path).mkdir(parents=True)
    with pytest.raises(frontend.FrontendError, match="chart is bundled into the page and brings no license"):
        frontend.write_licenses(tmp_path)
    (module / "LICENSE.md").write_text("may be used\n")

    frontend.write_licenses(tmp_path)

    assert (
        "chart 1.2.0 (MIT)\n=================\n\nmay be used\n"
        in (frontend.output(tmp_path) / frontend.LICENSES).read_text()
    )


def test_every_extra_that_is_offered_as_a_whole_exists():
    (whole,) = PROJECT["optional-dependencies"]["all"]
    found = re.fullmatch(r"stepscope\[(.*)\]", whole)

    assert found is not None
    assert set(found[1].split(",")) < set(PROJECT["optional-dependencies"])


def built(checkout: Path) -> None:
    """Leaves what a build of the page leaves."""
    folder = frontend.output(checkout)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text("page")
    (folder / ".stamp").write_text(frontend.sources_stamp(checkout) + "\n")


# -- the loops ---------------------------------------------------------------------------------------------------


@pytest.fixture
def loops(tmp_path, monkeypatch):
    """A checkout with one loop, and a compiler that copies."""
    script(native.kernels(tmp_path) / "sums.pyx", "one")
    script(native.kernels(tmp_path) / "shared.pxd", "one")
    made = []

    def make(module, root, mode, compiler, folder):
        made.append(module.name.rpartition(".")[2])
        (folder / module.name).write_text(mode)
        return folder / module.name

    monkeypatch.setattr(native, "_make", make)
    monkeypatch.setattr(native, "require_compiler", lambda: ["cc"])
    return tmp_path, made


def test_only_loops_whose_sources_changed_are_compiled_again(loops):
    root, made = loops
    script(native.kernels(root) / "spans.pyx", "one")

    assert [native.build(root), native.build(root)] == [True, False]
    assert sorted(made) == ["_views", "spans", "sums"]
    made.clear()
    script(native.kernels(root) / "sums.pyx", "two")
    assert (native.is_outdated(root), native.is_built(root)) == (True, False)
    assert (native.build(root), made) == (True, ["sums"])
    made.clear()
    script(native.kernels(root) / "shared.pxd", "two")  # which any of them may include
    assert (native.build(root), sorted(made)) == (True, ["_views", "spans", "sums"])
    assert (native.is_outdated(root), native.is_built(root)) == (False, True)


# -- the page ----------------------------------------------------------------------------------------------------


def test_what_is_tested_or_fetched_does_not_count_as_a_source_of_the_page(tmp_path):
    for name in ("src/main.ts", "package.json", "node_modules/x/index.js", "tests/x.test.ts"):
        script(tmp_path / "frontend" / name, name)
    before = frontend.sources_stamp(tmp_path)

    script(tmp_path / "frontend" / "node_modules/x/index.js", "other")
    script(tmp_path / "frontend" / "tests/x.test.ts", "other")
    assert frontend.sources_stamp(tmp_path) == before
    script(tmp_path / "frontend" / "src/main.ts", "other")
    assert frontend.sources_stamp(tmp_path) != before


def test_without_sources_the_built_page_is_taken_as_it_is(tmp_path):
    assert not frontend.is_built(tmp_path)
    built(tmp_path)
    assert frontend.is_built(tmp_path)
    assert frontend.build(tmp_path) is False


PIP_FAILURES = [
    ("      [page] building the page\n      [page] the page needs Node.js 20.19 or newer.",
     "the page could not be built: the page needs Node.js 20.19 or newer"),
    ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "the disk is full"),
    ("WARNING: Retrying, NewConnectionError(...)\nERROR: No matching distribution found for x",
     "pip cannot reach the package index"),
    ("ERROR: No matching distribution found for torch==2.13.0",
     "the package index has no torch==2.13.0 for this Python and system"),
    ("PermissionError: [Errno 13] Permission denied: '.venv/lib'", "a file may not be written"),
    ("error: something new", "pip failed; its last words:\nerror: something new"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "reason"), PIP_FAILURES)
def test_a_pip_failure_is_told_in_plain_words(output, reason):
    assert bootstrap.diagnose(output.splitlines()).startswith(reason)


@pytest.mark.parametrize("name", ["bootstrap.py", "frontend.py"])
def test_the_set_up_script_runs_under_an_old_python(name):
    # Python 3.6 is the oldest that a supported system still calls python3.
    ast.parse((ROOT / "scripts" / name).read_text(), feature_version=(3, 6))


def test_no_line_of_the_page_is_beyond_120():
    # The formatter breaks code at 120 columns, but neither texts nor comments.
    folder = ROOT / "frontend"
    sources = [*(folder / "src").rglob("*"), *(folder / "tests").rglob("*")]
    long = [
        f"{path.relative_to(folder)}:{number}"
        for path in sources
        if path.suffix in {".ts", ".tsx", ".css"}
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 120
    ]
    assert sources and not long


# -- make and CI -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["demo", "test"])
def test_make_without_python_says_what_is_missing(target, tmp_path):
    make = shutil.which("make")
    assert make

    done = subprocess.run(
        [make, "-s", "-C", str(ROOT), target], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )

    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == "cannot set up: Python is missing; install Python 3.11 or newer"


@pytest.mark.parametrize("status", [0, 2])
def test_ci_runs_make_test_and_passes_its_status_on(tmp_path, status):
    script(tmp_path / "make", f'echo "make $* with CI=$CI"; exit {status}\n')
    script(tmp_path / "chromium", "")

    done = run_ci(f"{tmp_path}:{os.environ['PATH']}")

    assert (done.stdout, done.returncode) == ("make test with CI=true\n", status)


def run_ci(path: str) -> subprocess.CompletedProcess[str]:
    """Runs `.ci/run` with these programs."""
    return subprocess.run([ROOT / ".ci" / "run"], env={"PATH": path}, capture_output=True, text=True)


# -- versions and dependencies -----------------------------------------------------------------------------------


def test_the_version_stands_in_one_place():
    declared = re.findall(r'^__version__ = "(\d+\.\d+\.\d+)"$', (PACKAGE / "__init__.py").read_text(), re.MULTILINE)

    assert len(declared) == 1
    assert "version" in PROJECT["dynamic"]
    others = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]
    assert [path.name for path in others if f'"{declared[0]}"' in path.read_text(encoding="utf-8")] == []


def test_the_changelog_starts_with_what_is_not_released():
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert sections[0] == "[Unreleased]"
    assert [s for s in sections[1:] if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", s)] == []


def names(requirements: list[str]) -> set[str]:
    """The distributions that a list of requirements names."""
    return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}


# Used only where the job has imported it already, or where the machine has it.
HOOKED = {"keras", "transformers", "cupti"}
IMPORTED_AS = {
    "grpcio": "grpc",
    "ipython": "IPython",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
    "pillow": "PIL",
    "prometheus-client": "prometheus_client",
    "protobuf": "google",
    "typing-extensions": "typing_extensions",
}
FOR_WORK_ON_STEPSCOPE = {"test", "bench", "dev", "node", "docs", "fuzz"}


def test_what_the_package_imports_is_what_it_declares():
    found = {found.target.partition(".")[0] for module, path in modules(PACKAGE) for found in imports_of(module, path)}
    extras = PROJECT["optional-dependencies"]
    offered = [need for extra in extras.keys() - FOR_WORK_ON_STEPSCOPE for need in extras[extra]]
    optional = {IMPORTED_AS.get(name, name) for name in names(offered)} | HOOKED

    assert found - {"stepscope", *sys.stdlib_module_names} - optional == {
        IMPORTED_AS.get(name, name) for name in names(PROJECT["dependencies"])
    }


def test_torch_is_pinned_exactly_for_tests():
    # A range may resolve to a build that brings gigabytes of GPU libraries.
    assert [need for need in PROJECT["optional-dependencies"]["test"] if need.startswith("torch")] == ["torch==2.13.0"]


def test_the_files_that_start_first_exist():
    assert [name for name in (*IN_TURNS, *LONGEST_FIRST) if not (ROOT / "tests" / name).is_file()] == []


def test_one_worker_has_all_tests_that_take_turns():
    tests = ROOT / "tests"
    users = [
        path for path in tests.rglob("test_*.py") if re.search(r"\b(record_calmly|taking_a_turn)\b", path.read_text())
    ]

    assert {path.relative_to(tests).as_posix() for path in users if path != Path(__file__)} == set(IN_TURNS)
