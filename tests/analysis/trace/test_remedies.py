"""What is told of recordings by other makers: nothing that belongs to another recorder, framework or optimizer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from draw import Sort, draw

import stepscope
from stepscope.analysis.trace.remedies import TABLES, recorder_of, remedy
from stepscope.model import EventKind as K

_TORCH, _XLA = {"pytorch", "mps", "npu", "xpu", "hpu", "stepscope"}, {"tensorflow", "jax"}
# Words of an advice or remedy, and whose recordings may be told so.
_BELONGS = {
    "torch.profiler": _TORCH,
    "ProfilerActivity": _TORCH,
    "ProfilerOptions": {*_XLA, "python", "stepscope"},
    "torch.mps": {"mps"},
    "torch_npu": {"npu"},
    "CUPTI": {"pytorch", "stepscope", *_XLA, "python"},
    "schedule(skip_first": _TORCH,
    "profile_batch": {"tensorflow"},
    "nsys ": {"nsight"},
    "NVTX": {"nsight"},
    "tf.": {"tensorflow"},
    "jax.": {"jax"},
}
_OPTIMIZERS = ("AdamW", "Adam", "SGD", "Adagrad", "RMSprop")


def _foreign_words(told: str, recorder: str) -> list[str]:
    return [word for word, whose in _BELONGS.items() if word in told and recorder not in whose]


def test_no_table_tells_a_recorder_the_words_of_another() -> None:
    for table in TABLES:
        for recorder in ("nsight", "chrome", "", *_TORCH, *_XLA, "python"):
            assert remedy(table, recorder)
            assert not _foreign_words(remedy(table, recorder), recorder)


@pytest.mark.parametrize(
    ("op", "recorder"), [("aten::linear_backward", "mps"), ("torch_npu::npu_mm", "npu"), ("aten::mm", "pytorch")]
)
def test_the_backend_is_told_by_its_ops(op: str, recorder: str) -> None:
    trace = replace(draw("host main | a-", {"a": Sort(K.OP, op)}), framework="pytorch")

    assert recorder_of(trace) == recorder


def _recordings(shared: Path) -> Iterator[list[Path]]:
    yield from ([folder] for folder in sorted((shared / "corpus").iterdir()) if folder.is_dir())
    for case in json.loads((shared / "strangers/cases.json").read_text()).values():
        paths = case["path"] if isinstance(case["path"], list) else [case["path"]]
        if case.get("overview", True):
            yield [shared / "strangers" / path for path in paths]


def test_no_recording_at_hand_is_told_what_belongs_to_another_maker(corpus: Path) -> None:
    foreign = []
    for paths in _recordings(corpus.parent):
        profile = stepscope.load(paths if len(paths) > 1 else paths[0])
        report = profile.overview()
        told = [each for item in report.advice for each in (item.title, *item.actions)]
        told += [item.remedy for item in report.missing]
        foreign += [(paths[0].name, text) for text in told if _foreign_words(text, report.context.recorder)]
        tables = [profile.trace(host).strings for host in profile.hosts]
        names = {name for strings in tables for name in strings.texts(np.arange(len(strings)))}
        used = [each for each in _OPTIMIZERS if any(f"#{each}." in name for name in names)]
        foreign += [
            (paths[0].name, text)
            for text in told
            if any(f"optim.{each}(" in text for each in _OPTIMIZERS if each not in used)
        ]
    assert foreign == []
