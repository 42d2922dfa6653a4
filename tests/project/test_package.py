"""What is published: the wheel, its description and links, and the recipe for conda."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from places import ROOT

import frontend
import native
import oldest
import release
from stepscope import __version__

pytest.importorskip("hatchling", reason="builds the wheel; `make test` installs it")
hatch_build = pytest.importorskip("hatch_build", reason="the build hook is in the checkout alone")
yaml = pytest.importorskip("yaml")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MOST_BYTES = 5 << 20


def build(folder: Path, target: str) -> Path:
    words = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"), "wheel")


def test_a_wheel_holds_the_package_and_its_licences_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as packed:
        roots = {name.partition("/")[0] for name in packed.namelist()}
        if "stepscope/web/static/index.html" not in packed.namelist():
            pytest.skip("the page is not built")

    assert release.check_wheel(ROOT, wheel) == ""
    assert roots == {"stepscope", f"stepscope-{__version__}.dist-info"}
    assert wheel.stat().st_size < MOST_BYTES


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("stepscope/py.typed", None, "not packed: stepscope/py.typed"),
        ("stepscope/kernels/calls.abi3.so", None, "not packed: stepscope/kernels/calls"),
        ("stepscope/kernels/calls.pyx", "", "packed, but of no use: stepscope/kernels/calls.pyx"),
        ("stepscope/tests/test_a.py", "", "packed, but of no use: stepscope/tests/test_a.py"),
        ("stepscope/web/static/licenses.txt", "\npreact 11 (MIT)\n", "bundled without a licence: @dagrejs/dagre, "),
        (
            f"stepscope-{__version__}.dist-info/METADATA",
            "Description-Content-Type: text/markdown\n\nsee [Tables](docs/tables.md)",
            "dead links in the description: docs/tables.md",
        ),
        (f"stepscope-{__version__}.dist-info/METADATA", "Name: a\n\n", "the description is not Markdown: None"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_wheel_is_said(wheel, tmp_path, name, text, problem):
    broken = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as packed, zipfile.ZipFile(broken, "w") as changed:
        for other in {*packed.namelist()} - {name}:
            changed.writestr(other, packed.read(other))
        if text is not None:
            changed.writestr(name, text)

    assert release.check_wheel(ROOT, broken).startswith(problem)


def test_from_the_source_distribution_alone_a_wheel_can_be_made(tmp_path):
    (tmp_path / "packed").mkdir()
    with tarfile.open(build(tmp_path / "packed", "sdist")) as packed:
        packed.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.glob("stepscope-*")

    said = subprocess.run([sys.executable, "-m", "hatchling", "metadata"], cwd=folder, capture_output=True, check=True)

    assert json.loads(said.stdout)["version"] == __version__
    assert frontend.is_built(folder) == frontend.is_built(ROOT)
    assert [native.stamp_of(module, folder) for module in native.modules(folder)] == [
        native.stamp_of(module, ROOT) for module in native.modules(ROOT)
    ]


@pytest.mark.parametrize(
    ("address", "link"),
    [("", "see Tables and [a page](https://x.org/y)"),
     ("https://h.org/p", "see [Tables](https://h.org/p/blob/main/docs/tables.md) and [a page](https://x.org/y)")],
)  # fmt: skip
def test_links_follow_from_the_address_of_the_project(address, link):
    text = "see [Tables](docs/tables.md) and [a page](https://x.org/y)"

    assert hatch_build.absolute_links(text, address) == link
    assert all(url.startswith(address) for url in hatch_build.project_urls(address).values())
    assert bool(hatch_build.project_urls(address)) == bool(address)


def test_the_recipe_for_conda_asks_for_what_the_package_needs():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))

    assert set(recipe) == {"schema_version", "package", "source", "build", "requirements", "tests", "about"}
    assert recipe["schema_version"] == 1
    assert recipe["package"] == {"name": "stepscope", "version": __version__}
    needs = [need.replace(" ", "") for need in recipe["requirements"]["run"]]
    assert sorted(needs) == sorted([*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"])
    builds = [need.replace(" ", "") for need in recipe["requirements"]["host"]]
    system = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    assert {need.lower() for need in system["requires"] if ";" not in need} < set(builds)
    name, _, place = recipe["build"]["python"]["entry_points"][0].partition(" = ")
    assert PROJECT["scripts"] == {name: place}
    assert (recipe["about"]["summary"], recipe["about"]["license"]) == (PROJECT["description"], PROJECT["license"])
    assert (ROOT / recipe["about"]["license_file"]).is_file()


def test_the_oldest_releases_that_are_tested_are_the_lower_bounds():
    pins = oldest.pins()

    assert pins[: len(PROJECT["dependencies"])] == [need.replace(">=", "==") for need in PROJECT["dependencies"]]
    assert {"mcp==2.0", "pandas==2.2.2", "tensorboard==2.19"} < set(pins)


def test_the_classifiers_are_the_pythons_that_wheels_are_built_for():
    named = re.findall(r"Python :: (3\.\d+)'", str(PROJECT["classifiers"]))
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]

    assert [f"cp{version.replace('.', '')}-*" for version in named] == tool["build"]
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_a_build_whose_output_pip_keeps_says_on_the_terminal_what_it_does(tmp_path, capsys):
    terminal = tmp_path / "terminal"

    with hatch_build.copy_output_to_terminal(str(terminal)):
        print("[native] compiling 28 modules with cc")
    with hatch_build.copy_output_to_terminal(str(tmp_path / "no" / "terminal")):
        print("[page] building the page")

    assert terminal.read_text() == "[native] compiling 28 modules with cc\n"
    assert capsys.readouterr().out == "[native] compiling 28 modules with cc\n[page] building the page\n"
