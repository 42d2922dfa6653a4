"""Proofs beside a session, and the advice that they are about."""

from __future__ import annotations

import pytest

import stepscope
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.overview.proofs_tool import find_proof
from stepscope.proof.record import ABLATION, DELAY, Proof, write_proofs

INPUT = Proof("train.py", ABLATION, "input", None, None, 19.4, 12.1, None, 1.6, 1.52, 1.69, 8.0, 1.0, 30, 240)
PREPARE = Proof(
    "train.py", DELAY, "data.py:prepare", "/job/data.py", 7, 20.0, 21.9, 2.0, 0.95, 0.9, 1.0, 8.0, 1.0, 12, 96, 30.0
)
NOTHING = Proof("train.py", DELAY, "gone", note="it was never called in these steps")


def culprit(name: str, file: str) -> Culprit:
    return Culprit(name, file, 7, None, None, 1, 1)


@pytest.mark.parametrize(
    ("kind", "of", "proof"),
    [
        ("input_preprocessing", None, INPUT),
        ("python_overhead", culprit("prepare", "data.py"), PREPARE),
        ("python_overhead", culprit("prepare", "other.py"), None),
        ("python_overhead", culprit("gone", "data.py"), None),
        ("input_python", culprit("prepare", "/job/data.py"), INPUT),  # left out says more than delayed
        ("low_precision", None, None),
    ],
)
def test_an_advice_has_the_proof_of_its_culprit_or_its_part(kind, of, proof):
    assert find_proof(kind, of, [NOTHING, PREPARE, INPUT]) == proof


@pytest.fixture
def session(tmp_path):
    """A session in which the input takes half of each step."""
    from stepscope.formats.xspace.writer import write
    from stepscope.model import EventKind, LineKind, PlaneKind, TraceBuilder

    builder = TraceBuilder("host")
    loop = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", kind=LineKind.THREAD)
    for number in range(6):
        start = number * 20_000_000_000
        loop.event("train", start, 20_000_000_000, EventKind.STEP_MARK, {"step_num": number})
        loop.event(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, 8_000_000_000, EventKind.INPUT_WAIT
        )
        loop.event("aten::mm", start + 8_000_000_000, 12_000_000_000, EventKind.OP)
    folder = tmp_path / "plugins" / "profile" / "one"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(write(builder.build()))
    return folder


def test_the_advice_of_a_session_says_what_was_measured(session):
    write_proofs([INPUT, NOTHING], session / "proofs.json")

    profile = stepscope.load(str(session))
    first = profile.overview().to_dict()["advice"][0]

    assert first["measured"] == {
        "speedup": 1.6,
        "speedup_least": 1.52,
        "speedup_most": 1.69,
        "kind": "ablation",
        "place": "input",
        "steps": 240,
        "sentence": INPUT.sentence,
    }
    assert profile.advice().to_dict()["advice"][0]["measured"] == first["measured"]
    assert "1.60x faster (measured: 1.52 to 1.69)" in "\n".join(profile.overview().summary_lines())


def test_proofs_are_a_table_for_every_face(session):
    write_proofs([PREPARE, NOTHING], session / "proofs.json")

    profile = stepscope.load(str(session))
    rows = profile.report("proofs").to_dict()["rows"]

    assert [(row["place"], row["sensitivity"], row["note"]) for row in rows] == [
        ("data.py:prepare", 0.95, None),
        ("gone", None, "it was never called in these steps"),
    ]
    assert rows[0]["speedup"] == pytest.approx(1.6129)
    table = profile.sql("SELECT place, sensitivity FROM proofs ORDER BY place").to_arrow().to_pylist()
    assert table == [{"place": "data.py:prepare", "sensitivity": 0.95}, {"place": "gone", "sensitivity": None}]


def test_a_damaged_file_of_proofs_is_a_warning(session):
    (session / "proofs.json").write_text("{")
    profile = stepscope.load(str(session))
    assert profile.overview().to_dict()["advice"][0]["measured"] is None
    assert "proofs cannot be read" in "".join(profile.overview().warnings)


@pytest.mark.parametrize(
    ("kind", "culprit", "command"),
    [
        ("input_python", None, "stepscope prove --ablate input SCRIPT"),
        (
            "input_python",
            ("$data.py:31 Data.load", "data.py"),
            "stepscope prove --ablate input --ablate data.py:load SCRIPT",
        ),
        ("host_sync", ("$data.py:31 Data.load", "data.py"), "stepscope prove --ablate sync SCRIPT"),
        ("python_overhead", ("$data.py:31 Data.prepare", "data.py"), "stepscope prove --at data.py:prepare SCRIPT"),
        ("python_overhead", ("<module>", "train.py"), None),
        ("python_overhead", ("aten::mm", None), None),
        ("low_precision", None, None),
    ],
)
def test_an_advice_names_the_command_that_proves_it(kind, culprit, command):
    where = None if culprit is None else Culprit(*culprit, line=1, op=None, layer=None, calls=1, ps=1)
    advice = Advice(
        id=kind, kind=kind, title="", evidence="", predicted_speedup=None, actions=(), tool="", culprit=where
    )
    assert advice.to_dict()["prove"] == command
