"""The checklist of a release: each point says what is left to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import release

VERSION = '__version__ = "1.2.0"\n'


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


def test_the_checklist_is_whole_and_this_checkout_has_its_recipe_and_pages(tmp_path: Path) -> None:
    points = dict(release.checklist(release.ROOT, tmp_path))

    assert [*points] == [
        "changelog", "recipe for conda", "metadata and licence",
        "address of the repository", "types, schemas, pages", "tree and tag",
        "wheel and source distribution", "a clean environment",
    ]  # fmt: skip
    assert [points["recipe for conda"](), points["types, schemas, pages"]()] == ["", ""]


def test_where_the_build_failed_the_checklist_goes_on(tmp_path: Path) -> None:
    assert release.check_installed(release.ROOT, tmp_path) == "there is no wheel"
