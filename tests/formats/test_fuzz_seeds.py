"""The files that `make fuzz` starts from are whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stepscope.formats.base import format_of

sys.path.append(str(Path(__file__).resolve().parents[2] / "fuzz"))

import injuries
import seeds

NAMES = injuries.NAMES


@pytest.mark.parametrize("name", seeds.MAKERS)
def test_a_seed_is_a_whole_file(name: str) -> None:
    form = format_of(NAMES[name])
    for seed in seeds.MAKERS[name]():
        trace = form.read(seed, NAMES[name], "")

        trace.check()
        assert len(trace.events) >= 2
        assert not trace.partial
