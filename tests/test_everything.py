"""Every corpus file through every tool and every form of result."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet
import pytest

import stepscope
from stepscope.analysis.breakdown import CATEGORIES
from stepscope.analysis.registry import TOOLS
from stepscope.formats.session import find_sessions
from stepscope.report import Report, Rows
from stepscope.report.export import to_csv, to_json, to_parquet

SESSIONS = (
    "jax-mi300x-attention", "jax-mi300x-conv", "tf-gpu-multi-worker", "torch-h100-owlv2", "torch-h100-qwen",
    "torch-mi300-resnet", "torch-multirank", "torch-nccl", "torch-sglang-qwen3", "torch-v100-resnet50-workers0",
    "torch-v100-resnet50-workers4", "tpu-inference",
)  # fmt: skip


def refuse_constant(name: str) -> None:
    raise AssertionError(f"JSON holds {name}")


def exercise(report: Report) -> None:
    """Takes a report through every form that it has and holds them against each other."""
    whole = json.loads(to_json(report), parse_constant=refuse_constant)
    assert whole["tool"] == report.TOOL
    assert {"schema_version", "hosts", "warnings", "partial"} <= whole.keys()
    table = report.main_table()
    names = [field.name for field in table.fields]
    lines = list(csv.reader(io.StringIO(to_csv(report).decode())))
    assert lines[0] == names
    parquet = pyarrow.parquet.read_table(io.BytesIO(to_parquet(report)))
    assert parquet.column_names == names
    assert len(lines) - 1 == parquet.num_rows == len(table.rows) == len(report.to_pandas())
    for section in report.sections():
        if isinstance(section, Rows):
            for row in section.rows:
                assert {field.name for field in section.fields} <= row.keys()
    html = report._repr_html_()
    assert html.count("<h4>") == len(report.shown())
    assert "nan" not in " ".join(report.summary_lines()).lower().split()


@pytest.mark.parametrize("session", SESSIONS)
def test_every_corpus_session_goes_through_every_tool_and_form(session: str, corpus: Path) -> None:
    profile = stepscope.load(corpus / session)
    for tool in TOOLS:
        report = profile.report(tool.name)
        exercise(report)
        assert report.hosts, tool.name


@pytest.mark.parametrize("session", SESSIONS)
def test_the_parts_of_a_step_add_up_to_the_step(session: str, corpus: Path) -> None:
    rows = stepscope.load(corpus / session).steps().rows
    assert rows
    for row in rows:
        assert sum(row[category] for category in CATEGORIES) == pytest.approx(row["duration_ms"], abs=1e-5)
        assert all(row[category] >= 0 for category in CATEGORIES)


def test_every_bottleneck_capture_has_the_ten_steps_of_its_program(bottleneck_captures: Path) -> None:
    for logdir in sorted(bottleneck_captures.glob("*/*")):
        for session in find_sessions(logdir):
            report = stepscope.load(session.path).overview()
            exercise(report)
            assert (logdir.name, report.steps_source) == (logdir.name, "markers")
            assert report.step_time_ms["count"] in (9, 10), logdir
