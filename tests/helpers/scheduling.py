"""Which worker of a test run gets which tests, and when: by file, the longest first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

TESTS = Path(__file__).resolve().parents[1]
# These take turns (calm.py), so one worker has them all: of two, one would wait for the other.  Most of that time is
# sleep, and they start first.
IN_TURNS = (
    "project/test_tutorials.py",
    "truth/test_real_libraries.py",
    "capture/test_workers.py",
    "truth/test_unmarked_loops.py",
    "capture/test_save_finder.py",
    "analysis/input/test_tf_data.py",
)
# The longest of the other files: one that starts last keeps a worker busy while the others have nothing to do.
LONGEST_FIRST = (
    "capture/test_capture_safety.py",
    "capture/test_same.py",
    "browser/test_views.py",
    "capture/test_capture_matrix.py",
    "truth/test_everything.py",
    "browser/test_every_page.py",
    "engines/test_clusters.py",
    "project/test_docs_snippets.py",
    "truth/test_guide.py",
    "browser/test_pages.py",
    "cli/test_run.py",
    "browser/test_timeline_page.py",
    "browser/test_tasks.py",
    "formats/test_kineto.py",
    "analysis/account/test_replay.py",
    "analysis/workers/test_equal_work.py",
    "browser/test_in_tensorboard.py",
    "capture/test_capture_frameworks.py",
    "analysis/advice/test_advice.py",
    "engines/test_memory_budget.py",
    "formats/test_object_store.py",
    "formats/test_xspace_reader.py",
    "formats/test_xspace_damage.py",
    "browser/test_sessions_page.py",
    "browser/test_trouble.py",
    "formats/test_riegeli.py",
    "browser/test_report.py",
    "browser/test_people.py",
    "web/test_web.py",
    "capture/test_proved_programs.py",
    "agents/test_mcp.py",
    "formats/test_bounds.py",
    "analysis/advice/test_advice_names.py",
    "project/test_extending.py",
    "capture/test_capture_demo.py",
    "truth/test_torch_fuzz.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first; within a file the order stays."""
    rank = {TESTS / name: at for at, name in enumerate((*IN_TURNS, *LONGEST_FIRST))}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


class FilesAndTurns(LoadFileScheduling):
    """A worker gets whole files, since tests of one share captures that are slow to make; one gets all `IN_TURNS`."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return "in turns" if file.endswith(IN_TURNS) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesAndTurns | None:
    return FilesAndTurns(config, log) if config.getvalue("dist") == "loadfile" else None
