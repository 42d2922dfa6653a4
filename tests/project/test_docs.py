"""The documentation is complete, true to the code where it is made from it, and works offline."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from html.parser import HTMLParser

import pytest
from places import ROOT

import gen_docs
import stepscope
from stepscope import ProfilerOptions

DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def test_generated_pages_are_up_to_date():
    assert gen_docs.stale(gen_docs.pages()) == [], "run `make docs` and commit what it wrote"


def test_the_reference_has_every_public_name():
    named = {name.partition(".")[0] for names in gen_docs.REFERENCE.values() for name in names}

    assert named == set(stepscope.__all__)
    modules = {"client": stepscope.client, "server": stepscope.server}
    listed = {name for names in gen_docs.REFERENCE.values() for name in names}
    public = {f"{name}.{each}" for name, module in modules.items() for each in module.__all__}
    assert public - listed == {"client.OnProgress", "server.ANY_ADDRESS"}  # a type, and a constant: in the signatures


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    named = re.findall(r"[\w/-]+\.md", navigation)

    assert sorted(named) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_that_exist(page):
    path = ROOT / page
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))

    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


@pytest.mark.parametrize("page", ["architecture.md", "developing.md"])
def test_modules_that_a_page_names_exist(page):
    named = re.findall(r"`([a-z_/]+/[a-z_]+\.pyx?)`", (DOCS / page).read_text(encoding="utf-8"))
    folders = [ROOT, ROOT / "src" / "stepscope", ROOT / "src" / "stepscope" / "analysis"]

    assert [name for name in named if not any((folder / name).is_file() for folder in folders)] == []


def test_readme_opens_with_the_two_commands():
    lines = [line.split("#")[0].strip() for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()]

    assert lines[2:4] == ["make demo", "make test"]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/getting-started.md", "docs/developing.md"])
def test_make_targets_that_a_page_names_exist(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = (ROOT / page).read_text(encoding="utf-8")

    named = set(re.findall(r"(?:^    |`)make ([a-z]+)", text, re.MULTILINE))

    assert named
    assert named <= targets


def test_the_page_on_capturing_lists_every_option_with_its_default():
    rows = re.findall(r"^\| `(\w+)` \| ([^|`]+) \| ", (DOCS / "capture.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert dict(rows) == {field.name: str(field.default) for field in fields(ProfilerOptions)}


class Loads(HTMLParser):
    """Collects what a page loads by itself: scripts, styles, fonts, images, frames; not what a reader may click."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        loads = found.get("rel") in ("stylesheet", "icon", "preload", "shortcut icon") if tag == "link" else tag != "a"
        if loads:
            self.addresses += [address for address in (found.get("src"), found.get("href")) if address]


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("mkdocs", reason="needs mkdocs; `make test` installs it")
    site = tmp_path / "site"

    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site], cwd=ROOT, check=True
    )

    loads = Loads()
    for page in site.rglob("*.html"):
        loads.feed(page.read_text(encoding="utf-8"))
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert loads.addresses
    assert [address for address in loads.addresses if re.match(r"(\w+:)?//", address)] == []
    assert re.findall(r"(?:url\(|@import )['\"]?(?:\w+:)?//[^)'\"]+", styles) == []
