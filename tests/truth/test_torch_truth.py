"""What tools say of the corpus' PyTorch traces, against direct sums over their JSON."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from places import TORCH_TRACES

import stepscope


def events_of(path: Path) -> list[dict[str, Any]]:
    """All whole events of a file, times as exact decimals."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    found = json.loads(text, strict=False, parse_float=Decimal)["traceEvents"]
    return [event for event in found if event.get("ph") == "X"]


def counted(rows: Iterable[dict[str, Any]], name: str, count: str, total: str) -> dict[str, tuple[int, float]]:
    """Name -> (how often, us), rows of one name added up."""
    times, numbers = Counter[str](), Counter[str]()
    for row in rows:
        numbers[row[name]] += row[count]
        times[row[name]] += Decimal(str(row[total]))
    return {each: (numbers[each], float(times[each])) for each in numbers}


def near(sums: dict[str, tuple[int, float]]) -> dict[str, tuple[int, Any]]:
    """The same, for a comparison that grants rounding to a nanosecond."""
    return {name: (count, pytest.approx(total, abs=1e-3)) for name, (count, total) in sums.items()}


@pytest.mark.parametrize("name", TORCH_TRACES)
def test_kernels_copies_loaders_and_steps(corpus: Path, name: str) -> None:
    events, profile = events_of(corpus / name), stepscope.load(corpus / name)
    by_category: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        by_category.setdefault(event["cat"].lower(), []).append({**event, "one": 1})

    kernels = counted(by_category["kernel"], "name", "one", "dur")
    assert counted(profile.kernel_stats().to_dict()["rows"], "kernel", "occurrences", "total_us") == near(kernels)

    pipeline = profile.input_pipeline().to_dict()
    copies = [*by_category.get("memcpy", []), *by_category.get("gpu_memcpy", [])]
    copies = [each for each in copies if "HtoD" in each["name"]]
    wanted: dict[str | None, list[int]] = {}
    for each in copies:
        words = each["name"].lower()
        memory = next((sort for sort in ("pinned", "pageable") if sort in words), None)
        wanted.setdefault(memory, []).append(int(each["args"]["bytes"]))
    assert {row["memory"]: (row["count"], row["bytes"]) for row in pipeline["copies"]} == {
        memory: (len(sizes), sum(sizes)) for memory, sizes in wanted.items()
    }

    calls = [*by_category.get("operator", []), *by_category.get("user_annotation", [])]
    loaders = [call | {"ms": call["dur"] / 1000} for call in calls if call["name"].startswith("enumerate(DataLoader)")]
    found = counted(pipeline["loaders"], "loader", "calls", "total_ms")
    assert found == near(counted(loaders, "name", "one", "ms"))

    steps = {each["name"] for each in events if each["name"].startswith("ProfilerStep#")}
    if steps:
        rows = profile.steps().to_dict()["rows"]
        assert {row["name"] for row in rows} == steps
        assert len(rows) == len(steps)
