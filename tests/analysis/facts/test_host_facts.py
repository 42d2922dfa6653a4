"""The facts of a host, found one by one."""

from __future__ import annotations

import pytest
from draw import Sort, draw
from reporting import overview_of

from stepscope.analysis.facts import host_facts
from stepscope.errors import LeftOutError
from stepscope.model import EventKind as K
from stepscope.model import HostTrace

_STEPS = "host main | M0--M1--M2--\nhost main | aa  aa  aa"


def _fail(trace: HostTrace) -> object:
    raise ValueError("zip() argument 2 is longer than argument 1")


def _need_all(trace: HostTrace) -> object:
    raise LeftOutError


def test_a_finder_that_fails_leaves_the_rest_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = overview_of(draw(_STEPS, {"a": Sort(K.OP, "aten::mm")}))
    monkeypatch.setitem(host_facts._FINDERS, "excesses", _fail)
    report = overview_of(draw(_STEPS, {"a": Sort(K.OP, "aten::mm")}))

    assert report.verdict == whole.verdict
    assert [each for each in report.warnings if "could not be found" in each] == [
        "host: excesses could not be found (ValueError: zip() argument 2 is longer than argument 1); all else holds"
    ]


def test_what_needs_more_of_the_file_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(host_facts._FINDERS, "excesses", _need_all)

    with pytest.raises(LeftOutError):
        overview_of(draw(_STEPS, {"a": Sort(K.OP, "aten::mm")}))
