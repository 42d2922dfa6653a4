"""The tool `proofs`: what `stepscope prove` measured in the running job.

A proof says what a change did to the steps of the same program. Where there is one, the advice on the same function
or part shows it as `measured` instead of a prediction.  [Proving](../prove.md) explains how it is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.items import PART_OF_CLASS, plain_name
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.overview.advice_tool import AdviceReport
from stepscope.analysis.overview.session_figures import HostPart
from stepscope.proof.record import ABLATION, DELAY, Proof, measured_json
from stepscope.records import dataclass
from stepscope.report import Field, Report, Role, Rows, Section

NOT_COMPARABLE = "a proof is about the running job, not about the session that it lies beside"

FIELDS: tuple[Field, ...] = (
    Field("place", "text", "what was changed: a function or a part", "str", role=Role.NAME),
    Field("kind", "text", "delay: it took longer; ablation: it was left out; knob: a setting", "str", role=Role.TERM),
    Field("speedup", "ratio", "step time now over step time without it; empty if unknown"),
    Field("speedup_least", "ratio", "lower end of the interval of 95 %"),
    Field("speedup_most", "ratio", "upper end of that interval"),
    Field("sensitivity", "ratio", "by how many ms a step grows for each ms of delay there; empty for other kinds"),
    Field("sensitivity_least", "ratio", "lower end of the interval of 95 %"),
    Field("sensitivity_most", "ratio", "upper end of that interval"),
    Field("step_ms", "ms", "a plain step"),
    Field("changed_ms", "ms", "a step with the change"),
    Field("place_ms", "ms", "how long its calls take in a step"),
    Field("calls", "count", "calls per step", "float"),
    Field("pairs", "count", "how many pairs of blocks were compared", "int"),
    Field("steps", "count", "how many steps those had", "int"),
    Field("program", "text", "the script or module", "str", role=Role.LABEL),
    Field("file", "text", "where the function is defined", "str", role=Role.SOURCE),
    Field("line", "number", "the line there", "int", role=Role.ORDINAL),
    Field("note", "text", "notes, or why nothing could be measured", "str", role=Role.TEXT),
)


@dataclass(frozen=True, kw_only=True)
class ProofsReport(Report):
    """The proofs of a session.

    Attributes:
        proofs: in the order in which they were measured.
    """

    TOOL: ClassVar[str] = "proofs"

    proofs: tuple[Proof, ...] = ()

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {"rows": [proof_row(proof) for proof in self.proofs]}

    def sections(self) -> Sequence[Section]:
        """One table."""
        rows = tuple(proof_row(proof) for proof in self.proofs)
        return [
            Rows(
                "rows",
                "Proofs",
                FIELDS,
                rows,
                empty="nothing was proved: measure changes in the running job with stepscope prove SCRIPT",
            )
        ]


def merge(partials: Sequence[HostPart]) -> ProofsReport:
    """A report without proofs: they lie beside the traces, and `add_proofs` adds them."""
    found = overview.merge(partials)
    return ProofsReport(hosts=found.hosts, warnings=(), partial=found.partial)


def add_proofs(report: Report, proofs: Sequence[Proof]) -> Report:
    """A report with what was measured, beside what it predicts."""
    if isinstance(report, ProofsReport):
        return replace(report, proofs=tuple(proofs))
    if isinstance(report, AdviceReport):
        rows = tuple(row | {"measured": measured_json(_find_of_row(row, proofs))} for row in report.rows)
        return replace(report, rows=rows)
    if isinstance(report, overview.OverviewReport):
        items = [replace(item, measured=find_proof(item.kind, item.culprit, proofs)) for item in report.advice]
        return replace(report, advice=tuple(items))
    return report


def find_proof(kind: str, culprit: Culprit | None, proofs: Sequence[Proof]) -> Proof | None:
    """The proof of what an advice is about: of its culprit, or of the part that its class names; an ablation first.

    Args:
        kind: the class of the advice.
    """
    place = None if culprit is None else (culprit.name, culprit.file)
    return _find(kind, place, proofs)


def _find_of_row(row: dict[str, Any], proofs: Sequence[Proof]) -> Proof | None:
    culprit = row["culprit"]
    return _find(row["class"], culprit and (culprit["name"], culprit["file"]), proofs)


def _find(kind: str, culprit: tuple[str, str | None] | None, proofs: Sequence[Proof]) -> Proof | None:
    known = [proof for proof in proofs if proof.speedup is not None]
    of_culprit = [proof for proof in known if culprit is not None and _is_of(proof, *culprit)]
    of_part = [proof for proof in known if proof.kind == ABLATION and proof.place == PART_OF_CLASS.get(kind)]
    found = sorted([*of_part, *of_culprit], key=lambda proof: proof.kind == DELAY)
    return found[0] if found else None


def _is_of(proof: Proof, name: str, file: str | None) -> bool:
    """Whether a proof is about a function: by its name, in a file of the same name."""
    if file is None or proof.file is None or proof.place.rpartition(":")[2].rpartition(".")[2] != plain_name(name):
        return False
    return proof.file == file or proof.file.endswith(f"/{file}") or file.endswith(f"/{proof.file}")


def proof_row(proof: Proof) -> dict[str, Any]:
    """A proof as a row of the table."""
    speedup, sensitivity = proof.speedup or (None,) * 3, (None,) * 3
    if proof.kind == DELAY:
        sensitivity = (proof.value, proof.least, proof.most)  # type: ignore[assignment]
    kept = ("place", "kind", "step_ms", "changed_ms", "place_ms", "calls", "pairs", "steps", "program", "file", "line")
    row: dict[str, Any] = {name: getattr(proof, name) for name in kept}
    row |= dict(zip(("speedup", "speedup_least", "speedup_most"), speedup, strict=True))
    row |= dict(zip(("sensitivity", "sensitivity_least", "sensitivity_most"), sensitivity, strict=True))
    row = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
    return row | {"note": proof.note or None}
