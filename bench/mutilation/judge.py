"""Asks Stepscope about a recording and holds its answer against the right one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from bench.mutilation.known import Known
from bench.mutilation.rows import Recording

RIGHT, HONEST, FALSE = "right", "honest", "false"
STEP_TOLERANCE = 0.1  # marks and the work that they hold may be told apart by the gap between steps
GAIN_TOLERANCE = 1.1
DOUBTFUL = 0.5  # steps that are no more likely than not are said to be a guess


@dataclass(frozen=True)
class Judgement:
    """What an answer is worth, why, what was said, how sure it is of its steps, and whether these are right; None where
    no steps are claimed or the right ones are not known."""

    word: str
    why: str
    said: str
    confidence: float | None = None
    steps_right: bool | None = None


def ask(recording: Recording) -> Mapping[str, Any]:
    """What `overview` says of a recording, read from its file as a stranger's would be."""
    import stepscope

    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"STEPSCOPE_CACHE": "off"}):
        path = Path(folder, "recording" + recording.suffix)
        path.write_bytes(recording.encode())
        report: Mapping[str, Any] = stepscope.load(str(path)).overview().to_dict()
    return report


def judge(report: Mapping[str, Any], known: Known, longer: tuple[float, float] = (1.0, 1.0)) -> Judgement:
    """Right, honest or false.

    Right is the true verdict with a fair first advice.  Honest is "unknown", or the true verdict without advice.
    Anything else is false, and so is a wrong step time or a gain that the device's own work does not leave.
    """
    verdict = str(report["verdict"])
    advice = report["advice"][0] if report["advice"] else {"class": "none", "predicted_speedup": None}
    step = (report["step_time_ms"] or {}).get("mean")
    said = f"{verdict}, {advice['class']}" + (f" {advice['predicted_speedup']}x" if advice["predicted_speedup"] else "")
    said += f", step {step:.2f} ms" if step else ", no step"
    faults = []
    sure, steps_right = None, None
    if report["steps_source"] != "none" and step and known.step_ms is not None:
        sure = 1.0 if report["steps_confidence"] is None else float(report["steps_confidence"])
        steps_right = _is_near(step, known.step_ms, longer)
    if report["steps_source"] == "none" or (report["steps_confidence"] or 1.0) <= DOUBTFUL:
        step = None  # of the whole capture, or a guess
    if step and known.step_ms is not None and not _is_near(step, known.step_ms, longer):
        faults.append(f"a step is {known.step_ms[0] * longer[0]:.2f} to {known.step_ms[1] * longer[1]:.2f} ms")
    if verdict not in (*known.verdicts, "unknown"):
        faults.append(f"it is {' or '.join(known.verdicts)}")
    if advice["class"] not in (*known.first, "none"):
        faults.append(f"fair advice is {' or '.join(known.first)}")
    elif known.gain is not None and advice["class"] != "low_precision":
        most = known.gain * GAIN_TOLERANCE * longer[1] / longer[0]
        if (advice["predicted_speedup"] or 1.0) > most:
            faults.append(f"at most {known.gain:.2f}x is possible")
    if faults:
        return Judgement(FALSE, "; ".join(faults), said, sure, steps_right)
    is_right = verdict in known.verdicts and advice["class"] in known.first
    return Judgement(RIGHT if is_right else HONEST, "", said, sure, steps_right)


def _is_near(step: float, known: tuple[float, float], longer: tuple[float, float]) -> bool:
    least, most = known[0] * longer[0] * (1 - STEP_TOLERANCE), known[1] * longer[1] * (1 + STEP_TOLERANCE)
    return least <= step <= most
