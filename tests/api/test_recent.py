"""What is kept in memory because it was used last."""

from __future__ import annotations

from stepscope.shelf import Recent


def test_the_least_recently_used_value_goes() -> None:
    kept: Recent[str, int] = Recent(2)
    kept.put("a", 1)
    kept.put("b", 2)
    kept.get("a")

    assert kept.put("c", 3) == 3
    assert [kept.get(key) for key in "abc"] == [1, None, 3]
