"""The checklist of a release: each point says what is left to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import release

VERSION = '__version__ = "1.2.0"\n'
PROJECT = """
[project]
license = "Apache-2.0"
license-files = ["LICENSE"]
authors = [{ name = "Somebody" }]
description = "a profiler"
keywords = ["profiler"]
[tool.hatch.metadata.hooks.custom]
address = "ADDRESS"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "src/stepscope").mkdir(parents=True)
    (tmp_path / "recipe").mkdir()
    (tmp_path / "src/stepscope/__init__.py").write_text(VERSION)
    (tmp_path / "LICENSE").write_text("Apache License")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("## [Unreleased]\n\n## [1.2.0] - 2026-01-01\n\n- all\n", ""),
        ("## [1.2.0] - 2026-01-01\n", ""),
        ("## [Unreleased]\n\n- more\n\n## [1.2.0] - 2026-01-01\n", "move what is under [Unreleased] to [1.2.0]"),
        (
            "## [Unreleased]\n\n## [1.1.0] - 2025-01-01\n",
            "the newest section is of 1.1.0; write `## [1.2.0] - YYYY-MM-DD`",
        ),
        ("## [Unreleased]\n\n## [1.2.0]\n", "the newest section is of 1.2.0; write `## [1.2.0] - YYYY-MM-DD`"),
        ("# Changelog\n", "the newest section is of nothing; write `## [1.2.0] - YYYY-MM-DD`"),
    ],
)
def test_the_changelog_has_the_version_with_its_date_and_nothing_waits(checkout: Path, text: str, left: str) -> None:
    (checkout / "CHANGELOG.md").write_text(text)

    assert release.check_changelog(checkout) == (f"CHANGELOG.md: {left}" if left else "")


@pytest.mark.parametrize(("version", "left"), [("1.2.0", ""), ("1.1.0", "recipe/recipe.yaml: write the version 1.2.0")])
def test_the_recipe_has_the_version(checkout: Path, version: str, left: str) -> None:
    (checkout / "recipe/recipe.yaml").write_text(f'package:\n  name: stepscope\n  version: "{version}"\n')

    assert release.check_recipe(checkout) == left


def test_metadata_without_an_address_or_a_licence_text_is_not_ready(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text(PROJECT.replace("ADDRESS", "https://h.org/p"))
    assert release.check_metadata(checkout) == ""

    (checkout / "LICENSE").unlink()
    (checkout / "pyproject.toml").write_text(
        PROJECT.replace("ADDRESS", "").replace('authors = [{ name = "Somebody" }]', "")
    )
    assert release.check_metadata(checkout) == (
        "pyproject.toml: authors, LICENSE, the address of the public repository (tool.hatch.metadata.hooks.custom)"
    )


def test_the_checklist_is_whole_and_this_checkout_has_its_recipe_and_pages(tmp_path: Path) -> None:
    points = dict(release.checklist(release.ROOT, tmp_path))

    assert [*points] == [
        "changelog", "recipe for conda", "metadata and licence", "types, schemas, pages", "tree and tag",
        "wheel and source distribution", "a clean environment",
    ]  # fmt: skip
    assert [points["recipe for conda"](), points["types, schemas, pages"]()] == ["", ""]
