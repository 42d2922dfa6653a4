"""The JSON Schema of every tool's result, made from its declaration: `stepscope schema TOOL` prints it.

A table's columns and a figure's parts come from their fields, with unit and meaning; what no field describes has the
form that it has in the report of a small trace.  Whoever takes a field away, or gives it another type or unit, raises
the tool's `SCHEMA_VERSION`: otherwise nothing is written, and `make lint` fails.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import stepscope
from gen_docs import small_trace
from stepscope.analysis.overview.findings import CULPRIT_FIELDS, FINDING_FIELDS
from stepscope.analysis.registry import TOOLS
from stepscope.budgets import gate
from stepscope.doctor import examine_logdir
from stepscope.formats.xspace import writer
from stepscope.report import Field, Figures, Report, Rows
from stepscope.report.base import make_finite
from stepscope.report.schemas import FOLDER
from stepscope.runs import list_runs

_TYPES = {"float": "number", "int": "integer", "str": "string", "bool": "boolean"}

_ANYTHING = "anything"  # what no sample and no field says the type of
_LIST_OF_WORDS = re.compile(r'\[\s+"[^\[\]{}]*\]')

Schema = dict[str, Any]

_MAPPINGS = ("causes_ms",)  # which causes they hold differs from one recording to the next
_BY_CAUSE: Schema = {"type": ["object", "null"], "additionalProperties": {"type": ["number", "null"]}}

OVERVIEW, FINDINGS = "overview", "findings"


def all_schemas(reports: Mapping[str, Report]) -> dict[Path, str]:
    """The content of every file, from a report of each tool."""
    made = {
        tool.name: (f"{tool.summary[0].upper()}{tool.summary[1:]}.", schema_of(reports[tool.name])) for tool in TOOLS
    }
    made |= {name: (about, schema_of(report)) for name, (about, report) in _command_reports().items()}
    made[FINDINGS] = ("What an overview found, the most important first, by ids that never change.", findings_schema())
    return {FOLDER / f"{name}.json": _written(name, *about) for name, about in made.items()}


def _command_reports() -> dict[str, tuple[str, Report]]:
    """A report of each command that is no tool, with what it is, on two small sessions."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "plugins", "profile", name) for name in ("before", "after")]
        for path in paths:
            path.mkdir(parents=True)
            (path / "host.xplane.pb").write_bytes(writer.write(small_trace()))
        before, after = (stepscope.load(path) for path in paths)
        return {
            "compare": ("What differs between two sessions.", stepscope.compare(before, after)),
            "doctor": ("What is wrong with a logdir or with this machine.", examine_logdir(folder)),
            "gate": (
                "Whether sessions keep their budgets.",
                gate(before, after, {"overview.step_time.mean": {"most": 1000}}),
            ),
            "runs": ("The sessions of a logdir.", list_runs(folder)),
            "whatif": ("The median step after changes.", before.whatif("device_compute")),
        }


def _written(title: str, description: str, schema: Schema) -> str:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "description": description}
    return _LIST_OF_WORDS.sub(lambda found: " ".join(found[0].split()), json.dumps({**head, **schema}, indent=1)) + "\n"


def findings_schema() -> Schema:
    """The schema of `findings`, which an agent and a script get without the rest of the overview."""
    texts = {"type": "array", "items": {"type": "string"}, "description": "what to do, the best first"}
    finding = _describe_fields(FINDING_FIELDS, ())
    culprit = _describe_fields(CULPRIT_FIELDS, ()) | {"type": ["object", "null"], "description": "where to edit"}
    finding["properties"] |= {"culprit": culprit, "actions": texts}
    return {"type": ["array", "null"], "items": finding | {"required": [*finding["properties"]]}}


def schema_of(report: Report) -> Schema:
    """The schema of a report's JSON."""
    content = make_finite(report.to_dict())
    schema = _describe_value(content)
    for section in report.sections():
        if isinstance(section, Rows) and isinstance(content.get(section.id), list):
            schema["properties"][section.id]["items"] |= _describe_fields(section.fields, content[section.id])
        elif isinstance(section, Figures) and isinstance(content.get(section.id), dict):
            schema["properties"][section.id] |= _describe_fields(section.fields, [content[section.id]])
    if report.TOOL == OVERVIEW:
        schema["properties"][FINDINGS] = findings_schema()
    schema["properties"]["schema_version"] = {"const": report.SCHEMA_VERSION}
    return schema


def _describe_fields(fields: Sequence[Field], samples: Sequence[Any]) -> Schema:
    """The schema of rows: their fields, and what the samples have besides."""
    described = {field.name: _describe_field(field) for field in fields}
    found: Schema = _merge_samples(samples).get("properties", {})
    return {"type": "object", "properties": {**found, **described}, "required": [*described]}


def _describe_field(field: Field) -> Schema:
    kind: Schema = {"type": [_TYPES[field.kind], "null"]} if field.kind in _TYPES else {"type": ["array", "null"]}
    return {**kind, "description": field.doc, **({"x-unit": field.unit} if field.unit else {})}


def _describe_value(value: Any) -> Schema:
    if isinstance(value, dict):
        properties = {name: _BY_CAUSE if name in _MAPPINGS else _describe_value(each) for name, each in value.items()}
        return {"type": ["object", "null"], "properties": properties, "required": [*properties]}
    if isinstance(value, list | tuple):
        return {"type": ["array", "null"], "items": _merge_samples(value)}
    if isinstance(value, bool):
        return {"type": ["boolean", "null"]}
    if isinstance(value, int | float):
        return {"type": ["number", "null"]}
    return {"type": ["string", "null"]} if isinstance(value, str) else {}


def _merge_samples(values: Sequence[Any]) -> Schema:
    """What all of some values are; nothing if they differ."""
    kinds = {json.dumps(_describe_value(value)) for value in values}
    if len(kinds) == 1:
        return dict(json.loads(kinds.pop()))
    if values and all(isinstance(value, dict) for value in values):
        names = dict.fromkeys(name for value in values for name in value)
        of_names = {name: _merge_samples([value[name] for value in values if name in value]) for name in names}
        return {"type": ["object", "null"], "properties": of_names}
    return {}


def broken_promises(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What a new schema takes away or changes of an old one of the same version, as sentences."""
    if _version(before) != _version(after):
        return []
    new = dict(_facts(after))
    return [
        f"{path} has vanished" if path not in new else f"{path} was {fact}, and is {new[path]}"
        for path, fact in _facts(before)
        if new.get(path) != fact and (path not in new or fact != _ANYTHING)
    ]


def _version(schema: Mapping[str, Any]) -> Any:
    return schema.get("properties", {}).get("schema_version")


def _facts(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Each place in the JSON with its type and unit."""
    for name, each in schema.get("properties", {}).items():
        place = f"{path}.{name}".lstrip(".")
        if name != "schema_version":
            kind = " or ".join(each["type"]) if isinstance(each.get("type"), list) else each.get("type", _ANYTHING)
            yield place, f"{kind} {each.get('x-unit', '')}".strip()
        yield from _facts(each, place)
    if "items" in schema:
        yield from _facts(schema["items"], f"{path}[]")


def refusals(wanted: Mapping[Path, str]) -> list[str]:
    """The promises that the wanted files would break, tool by tool."""
    said = []
    for path, content in wanted.items():
        if path.is_file():
            broken = broken_promises(json.loads(path.read_text("utf-8")), json.loads(content))
            said += [f"{path.stem}: {sentence}; raise its SCHEMA_VERSION" for sentence in broken]
    return said
