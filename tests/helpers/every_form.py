"""The corpus sessions, and a report in every form that it has."""

from __future__ import annotations

import csv
import io
import json
import re
from html import escape

import pyarrow.parquet

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
    titles = [re.sub("<[^>]*>", "", title) for title in re.findall("<(?:h4|summary)>(.*?)</(?:h4|summary)>", html)]
    for section in report.visible_sections():
        said = escape(section.title.replace("`", ""))  # marks of code are tags there
        assert any(title.startswith(said) for title in titles)
    assert "nan" not in " ".join(report.summary_lines()).lower().split()
