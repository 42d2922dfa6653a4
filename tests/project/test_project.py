"""The project's own frame: set-up on a fresh machine, what CI runs, versions and dependencies."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from conftest import extract_once
from imports import PACKAGE, imports_of, modules
from places import ROOT

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


def fake_python(path: Path, version: tuple[int, int, int], missing: tuple[str, ...] = ()) -> Path:
    """A program that answers the set-up's question like a Python of that version."""
    return script(path, f"echo '{json.dumps({'version': version, 'missing': missing})}'\n")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A folder that is all there is on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


# -- which Python ------------------------------------------------------------------------------------------------


def test_python3_is_taken_if_it_is_new_enough(machine):
    fake_python(machine / "python3", (3, 11, 2))
    fake_python(machine / "python3.12", (3, 12, 0))

    assert bootstrap.choose(None).version == (3, 11, 2)


def test_another_python_is_taken_if_python3_is_too_old_or_lacks_venv(machine):
    fake_python(machine / "python3", (3, 9, 2))
    fake_python(machine / "python3.13", (3, 13, 0), missing=("ensurepip",))
    fake_python(machine / "python3.12", (3, 12, 1))

    assert bootstrap.choose(None).version == (3, 12, 1)


def test_the_python_that_was_asked_for_is_taken(machine, tmp_path):
    fake_python(machine / "python3", (3, 11, 2))
    other = fake_python(tmp_path / "other" / "python", (3, 12, 7))

    assert bootstrap.choose(str(other)).version == (3, 12, 7)


def test_without_any_python_the_message_says_so(machine):
    with pytest.raises(bootstrap.SetupError) as error:
        bootstrap.choose(None)

    assert str(error.value).splitlines()[0] == "Python 3.11 or newer is missing: there is no Python on the PATH."


def test_with_old_pythons_only_the_message_names_them(machine):
    fake_python(machine / "python3", (3, 9, 2))
    fake_python(machine / "python", (2, 7, 18))

    with pytest.raises(bootstrap.SetupError) as error:
        bootstrap.choose(None)

    assert str(error.value).splitlines() == [
        f"Python 3.11 or newer is missing: {machine}/python3 is Python 3.9.2; {machine}/python is Python 2.7.18.",
        "Install one, or point to it: make demo PYTHON=/path/to/python3.12",
    ]


def test_without_the_venv_module_the_message_names_the_package(machine):
    fake_python(machine / "python3", (3, 12, 3), missing=("ensurepip",))

    with pytest.raises(bootstrap.SetupError) as error:
        bootstrap.choose(None)

    assert str(error.value).splitlines() == [
        f"Python's venv module is missing: {machine}/python3 is Python 3.12.3 without the module ensurepip.",
        "Install it (on Debian: apt-get install python3.12-venv).",
    ]


@pytest.mark.parametrize("text", ["exit 1", "echo Welcome", "echo '{}'"])
def test_a_python_that_was_asked_for_and_does_not_work_is_named(machine, text):
    broken = script(machine / "broken", text)

    with pytest.raises(bootstrap.SetupError, match=rf"^PYTHON={broken} is not a Python that runs here\."):
        bootstrap.choose(str(broken))


# -- what is installed, and when ---------------------------------------------------------------------------------


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


@pytest.fixture
def node(monkeypatch):
    """The machine has a Node.js."""
    monkeypatch.setattr(frontend, "node_of_machine", lambda: frontend.Node("node", ["npm"]))


def installs(checkout: Path) -> list[str]:
    """What pip was asked for so far, as the text behind the checkout's path."""
    calls = (checkout / "calls").read_text().splitlines()
    return [call.partition(f"--editable {checkout}")[2] for call in calls]


@pytest.mark.usefixtures("node")
def test_set_up_installs_once_and_adds_what_another_purpose_needs(checkout):
    asked = [bootstrap.set_up(purpose, None, checkout) for purpose in ("demo", "demo", "test", "demo", "lint", "bench")]

    assert asked == [True, False, True, False, False, True]
    assert installs(checkout) == ["[mcp]", "[dev,docs,mcp,test]", "[bench,dev,docs,mcp,test]"]


@pytest.mark.usefixtures("node")
def test_set_up_installs_again_when_pyproject_changed(checkout):
    bootstrap.set_up("test", None, checkout)
    (checkout / "pyproject.toml").write_text("two")

    assert bootstrap.set_up("demo", None, checkout) is True
    assert installs(checkout) == ["[dev,docs,test]", "[mcp]"]


def test_a_failed_installation_leaves_no_stamp(checkout):
    python = checkout / ".venv" / "bin" / "python"
    python.write_text(python.read_text().replace("*) echo", "*) echo 'No space left on device'; exit 1; echo"))

    with pytest.raises(bootstrap.SetupError, match="the disk is full"):
        bootstrap.set_up("demo", None, checkout)

    assert not (checkout / ".venv" / "stepscope-setup.json").exists()


def test_a_broken_environment_is_made_anew(checkout, machine):
    (checkout / ".venv" / "bin" / "python").unlink()
    python = fake_python(machine / "python3", (3, 12, 1))
    made = f'mkdir -p "{checkout}/.venv/bin"; cp "{python}" "{checkout}/.venv/bin/python"'
    python.write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin\n[ "$2" = venv ] && {{ {made}; }}\n' + python.read_text())

    assert bootstrap.set_up("demo", None, checkout) is True
    assert (checkout / ".venv" / "stepscope-setup.json").exists()


def test_set_up_installs_again_when_the_page_is_not_that_of_its_sources(checkout, monkeypatch):
    monkeypatch.delenv(frontend.SKIP_VARIABLE, raising=False)
    bootstrap.set_up("demo", None, checkout)
    source = checkout / "frontend" / "index.html"
    source.parent.mkdir()
    source.write_text("one")

    assert bootstrap.set_up("demo", None, checkout) is True
    built(checkout)
    assert bootstrap.set_up("demo", None, checkout) is False
    source.write_text("two")
    assert bootstrap.set_up("demo", None, checkout) is True
    monkeypatch.setenv(frontend.SKIP_VARIABLE, "1")
    assert bootstrap.set_up("demo", None, checkout) is False


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


def test_checking_the_page_brings_a_node_where_the_machine_has_none(checkout, machine, monkeypatch):
    monkeypatch.delenv(frontend.SKIP_VARIABLE, raising=False)
    script(machine / "node", "echo v18.0.0\n")
    script(machine / "npm", "")
    monkeypatch.setenv(
        "PATH", f"{machine}:/usr/bin:/bin" if not shutil.which("node", path="/usr/bin:/bin") else str(machine)
    )
    bootstrap.set_up("lint", None, checkout)
    script(machine / "node", "echo v24.1.0\n")

    assert installs(checkout) == ["[dev,node]"]
    assert bootstrap._node_extra("lint") == () == bootstrap._node_extra("demo")


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


def test_set_up_installs_again_when_a_loop_changed(checkout, monkeypatch):
    monkeypatch.setenv(frontend.SKIP_VARIABLE, "1")
    bootstrap.set_up("demo", None, checkout)
    script(native.kernels(checkout) / "sums.pyx", "one")

    assert bootstrap.set_up("demo", None, checkout) is True


def test_without_a_compiler_the_message_says_what_to_do(tmp_path, machine, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(native, "compiler_of_python", lambda: None)
    monkeypatch.setattr(native.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(native.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(machine))
    script(native.kernels(tmp_path) / "sums.pyx", "one")
    with pytest.raises(native.NativeError, match=r"Python's headers are missing.*To do: install them"):
        native.build(tmp_path)

    script(tmp_path / "Python.h", "")
    with pytest.raises(
        native.NativeError, match=r"no C compiler.  To do: install one .* pip install 'ziglang"
    ) as caught:
        native.build(tmp_path)
    assert len(str(caught.value).splitlines()) == 1
    assert native.needed_packages(tmp_path) == [native.ZIG_PACKAGE]


def test_the_modules_are_not_in_git_and_not_in_a_source_distribution(loops):
    root, _ = loops
    native.build(root)

    assert {module.target.name for module in native.modules(root)} == {
        "sums" + native.suffix(),
        "_views" + native.suffix(),
    }
    ignored = (native.ROOT / ".gitignore").read_text()
    assert "src/stepscope/kernels/**/*.so" in ignored
    assert "src/stepscope/kernels/.native-stamp" in ignored


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


def test_without_node_the_message_says_what_to_do(tmp_path, machine, monkeypatch):
    monkeypatch.setattr(frontend, "node_of_python", lambda: None)
    monkeypatch.delenv(frontend.SKIP_VARIABLE, raising=False)
    script(tmp_path / "frontend" / "index.html", "page")

    with pytest.raises(frontend.FrontendError, match=r"To do: install it .* pip install .* STEPSCOPE_SKIP_FRONTEND=1"):
        frontend.build(tmp_path)
    assert frontend.needed_packages(tmp_path) == [frontend.NODE_PACKAGE]


def test_a_build_is_made_once_and_tells_why_it_failed(tmp_path, machine, monkeypatch):
    monkeypatch.delenv(frontend.SKIP_VARIABLE, raising=False)
    script(tmp_path / "frontend" / "index.html", "page")
    (tmp_path / "frontend" / "package-lock.json").write_text('{"packages": {}}')
    made = f"/bin/mkdir -p {frontend.output(tmp_path)}; echo page > {frontend.output(tmp_path)}/index.html"
    script(machine / "node", f'[ "$1" = --version ] && echo v22.12.0 && exit; echo build >> {tmp_path}/calls; {made}\n')
    script(machine / "npm", "echo 'npm error code ENOTFOUND'; exit 1\n")
    with pytest.raises(frontend.FrontendError, match="ENOTFOUND"):
        frontend.build(tmp_path)

    script(machine / "npm", f"echo $1 >> {tmp_path}/calls; /bin/mkdir -p node_modules\n")
    assert [frontend.build(tmp_path), frontend.build(tmp_path)] == [True, False]
    assert (tmp_path / "calls").read_text().splitlines() == ["ci", "build"]


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


@pytest.mark.parametrize("status", [0, 100])
def test_ci_installs_a_browser_where_there_is_none_and_goes_on_without(tmp_path, status):
    script(tmp_path / "make", "echo make\n")
    script(tmp_path / "id", "echo 0\n")
    script(tmp_path / "apt-get", f'echo "apt-get $*" >> {tmp_path}/calls; exit {status}\n')
    for name in ("bash", "dirname"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")

    done = run_ci(str(tmp_path))

    assert (done.stdout, done.returncode) == ("make\n", 0)
    asked = (tmp_path / "calls").read_text().splitlines()
    install = "apt-get -qq install -y --no-install-recommends chromium"
    assert asked == ["apt-get -qq update", install]
    assert ("could not be installed" in done.stderr) == (status != 0)


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


# -- fixtures ----------------------------------------------------------------------------------------------------


def test_an_archive_is_extracted_once(tmp_path):
    (tmp_path / "file.txt").write_text("hello")
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as tar:
        tar.add(tmp_path / "file.txt", "case/file.txt")

    folder = extract_once(tmp_path / "a.tar.xz", tmp_path / "out")
    (folder / "case" / "file.txt").write_text("changed")
    extract_once(tmp_path / "a.tar.xz", tmp_path / "out")

    assert (folder / "case" / "file.txt").read_text() == "changed"


def test_each_test_has_an_empty_cache_of_its_own(cache_dir):
    assert os.environ["STEPSCOPE_CACHE_DIR"] == str(cache_dir)
    assert list(cache_dir.iterdir()) == []
