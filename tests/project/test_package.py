"""What is published: the wheel, its description and links, and the recipe for conda."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from places import ROOT

import native
import oldest
from stepscope import __version__

pytest.importorskip("hatchling", reason="builds the wheel; `make test` installs it")
hatch_build = pytest.importorskip("hatch_build", reason="the build hook is in the checkout alone")
yaml = pytest.importorskip("yaml")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MOST_BYTES = 5 << 20
RELATIVE_LINK = re.compile(r"\]\((?!\w+:|#)")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    assert path.stat().st_size < MOST_BYTES
    return zipfile.ZipFile(path)


def test_a_wheel_holds_the_package_and_its_facts_and_nothing_else(wheel):
    roots = {name.partition("/")[0] for name in wheel.namelist()}

    assert roots == {"stepscope", f"stepscope-{__version__}.dist-info"}
    kinds = {Path(name).suffix for name in wheel.namelist() if not name.startswith("stepscope-")}
    assert not kinds & {".pyx", ".pxd", ".pb", ".gz", ".pickle", ".xz", ".map"}
    assert not [name for name in wheel.namelist() if re.search(r"(^|/)tests?/|/test_|node_modules", name)]


def test_a_wheel_holds_every_compiled_loop(wheel):
    wanted = {module.target.relative_to(ROOT / "src").as_posix() for module in native.modules(ROOT)}

    assert {name for name in wheel.namelist() if Path(name).suffix in {".so", ".pyd"}} == wanted
    assert len(wanted) > 15


def test_a_wheel_holds_its_licenses_and_those_of_the_page(wheel):
    facts = f"stepscope-{__version__}.dist-info"

    assert "Apache License" in wheel.read(f"{facts}/licenses/LICENSE").decode()
    if "stepscope/web/static/index.html" not in wheel.namelist():
        pytest.skip("the page is not built")
    assert "(MIT)" in wheel.read("stepscope/web/static/licenses.txt").decode()


def test_the_description_has_no_link_that_is_dead_outside_of_the_checkout(wheel):
    found = Parser().parsestr(wheel.read(f"stepscope-{__version__}.dist-info/METADATA").decode())

    assert found["Author"] == "The Stepscope authors"
    assert found["Description-Content-Type"] == "text/markdown"
    assert str(found.get_payload()).startswith("# Stepscope\n")
    assert RELATIVE_LINK.findall(str(found.get_payload())) == []


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

    with hatch_build.said_on_the_terminal(str(terminal)):
        print("[native] compiling 28 modules with cc")
    with hatch_build.said_on_the_terminal(str(tmp_path / "no" / "terminal")):
        print("[page] building the page")

    assert terminal.read_text() == "[native] compiling 28 modules with cc\n"
    assert capsys.readouterr().out == "[native] compiling 28 modules with cc\n[page] building the page\n"
