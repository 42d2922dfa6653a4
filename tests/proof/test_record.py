"""Proofs as files and as sentences."""

from __future__ import annotations

import os

import pytest

from stepscope.errors import InputError
from stepscope.proof import record
from stepscope.proof.record import ABLATION, DELAY, Proof, read_proofs, write_proofs

DELAYED = Proof(
    "train.py", DELAY, "data.py:prepare", "/job/data.py", 7, 20.0, 21.9, 2.0, 0.95, 0.9, 1.0, 8.0, 1.0, 12, 96, 30.0
)
LEFT_OUT = Proof("train.py", ABLATION, "input", None, None, 19.4, 12.1, None, 1.6, 1.52, 1.69, 8.0, 1.0, 30, 240)


def test_a_later_proof_of_a_place_replaces_the_earlier_one(tmp_path):
    write_proofs([DELAYED, LEFT_OUT], tmp_path / "proofs.json")
    again = Proof("train.py", ABLATION, "input", step_ms=9, changed_ms=6, value=1.5, least=1.4, most=1.6)
    write_proofs([again], tmp_path / "proofs.json")
    assert read_proofs(tmp_path) == [DELAYED, again]
    assert [path.name for path in tmp_path.iterdir()] == ["proofs.json"]


def test_a_session_without_proofs_has_none(tmp_path):
    assert read_proofs(tmp_path) == []


@pytest.mark.parametrize("text", ["", "[]", '{"proofs": 3}', '{"proofs": [{"program": '])
def test_a_damaged_file_is_said(tmp_path, text):
    (tmp_path / "proofs.json").write_text(text)
    with pytest.raises(InputError, match="cannot be read"):
        read_proofs(tmp_path)


@pytest.mark.parametrize(
    ("proof", "sentence"),
    [
        (DELAYED, "data.py:prepare: each ms there costs the step 0.95 ms (0.90 to 1.00), over 96 steps"),
        (LEFT_OUT, "without input a step takes 19.4 -> 12.1 ms: 1.60x (1.52 to 1.69), over 240 steps"),
        (
            Proof("train.py", DELAY, "gone", note="it was never called in these steps"),
            "gone: nothing measured: it was never called in these steps",
        ),
    ],
)
def test_a_proof_is_a_sentence(proof, sentence):
    assert proof.sentence == sentence


def test_the_sensitivity_predicts_the_gain_of_the_time_at_the_place():
    assert DELAYED.speedup == pytest.approx((20 / (20 - 7.6), 20 / (20 - 7.2), 20 / (20 - 8)))
    assert LEFT_OUT.speedup == (1.6, 1.52, 1.69)
    assert Proof("train.py", DELAY, "prepare").speedup is None


def test_a_folder_that_somebody_has_locked_for_ever_is_written_all_the_same(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(record, "_LOCK_TRY_S", 0.001)
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        write_proofs([Proof("train.py", ABLATION, "input")], tmp_path / "proofs.json")
    finally:
        os.close(handle)
    assert [proof.place for proof in read_proofs(tmp_path)] == ["input"]
