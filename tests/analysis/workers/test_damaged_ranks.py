"""Jobs whose files were damaged on their way: each damage is named and counted, and the rest is answered."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import stepscope
from bench.jobs.__main__ import make_job
from bench.jobs.damage import DAMAGES, damage_job
from bench.jobs.plan import Job

SAID = {
    "one rank missing": "only 7 of 8 ranks are present",
    "one file cut": "step 3 by 7 of 8 ranks; the other ones",
    "one rank stopped early": "step 2 by 7 of 8 ranks, step 3 by 7 of 8 ranks; the other ones",
    "ranks recorded different steps": "step 0 by 4 of 8 ranks, step 3 by 4 of 8 ranks; the other ones",
    "another world size": "rank 7 is of a job of 512 ranks, the others of one of 8",
    "one rank twice": "rank 0 appears twice",
    "no groups on one rank": "rank 7 recorded no process groups: 52 collectives are in those of ranks that list it",
    "an unknown collective": "32 collectives are of an unknown operation, permute_blocks",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A job whose last stage is too long, and its slowdown."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, float(str(make_job(folder, Job(fault="stages"))["slowdown"]))


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damage_is_named_and_the_cause_is_still_found(whole: tuple[Path, float], tmp_path: Path, how: str) -> None:
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    damage_job(tmp_path, how)
    report = stepscope.load(tmp_path).distributed().to_dict()

    assert any(SAID[how] in warning for warning in report["warnings"])
    assert [(row["cause"], row["stage"], row["ranks"]) for row in report["causes"]] == [("unequal_stages", 3, [6, 7])]
    assert report["slowdown"] == pytest.approx(whole[1], rel=0.02)
