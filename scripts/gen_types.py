"""Writes the TypeScript types and the JSON Schemas of the reports, from the declarations of their sections and fields.

With the types a wrong id of a section, or a wrong name of a column, does not pass the page's type check.  They are not
committed: whoever checks the page makes them, with `--types` nothing else.  With `--check` it writes nothing, and fails
if a file is out of date.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import textwrap
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from gen_docs import small_trace
from schemas import all_schemas, refusals
from stepscope.analysis.account.ribbon import Stretch
from stepscope.analysis.registry import TOOLS
from stepscope.analysis.timeline import details, selection, tracks
from stepscope.analysis.workers import late_ranks
from stepscope.report import Field, Figures, Prose, Report, Role, Rows, palette

ROOT = Path(__file__).resolve().parent.parent
PALETTE = ROOT / "frontend" / "src" / "generated" / "palette.ts"
TYPES = ROOT / "frontend" / "src" / "generated" / "reports.ts"
NOTICE = "/** Made by scripts/gen_types.py; change the declarations in Python and run `make format`. */"

# How a kind of field arrives as JSON.  Any value may be unknown.
_CELLS = {"float": "number", "int": "number", "str": "string", "bool": "boolean", "ints": "readonly number[]"}


_PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}

_ANSWERS = (
    *(
        tracks.Track,
        tracks.Group,
        details.Spot,
        details.Details,
        details.Links,
        selection.NameRow,
        selection.SelectionSum,
    ),
    Stretch,
    *(late_ranks.Waiter, late_ranks.LateArrival, late_ranks.LateRanks),
)


def types() -> str:
    """The whole file."""
    trace = small_trace()
    kinds = " | ".join(f'"{kind}"' for kind in _CELLS)
    lines = [
        NOTICE,
        *_union("Role", [role for role in Role if role is not Role.BY_UNIT]),
        f"export type Kind = {kinds};",
        "",
        "/** The tables and figures of every tool's report, by their ids, with the types of their fields. */",
        "export interface Reports {",
        *(line for tool in TOOLS for line in _report(tool.name, tool.merge([tool.partial(trace)]))),
        "}",
        "",
        "// What the timeline's routes answer.",
        *(line for answer in _ANSWERS for line in _interface(answer)),
    ]
    return "\n".join(lines) + "\n"


def _interface(answer: type) -> list[str]:
    hints = get_type_hints(answer)
    members = (f"  readonly {field.name}: {_hint(hints[field.name])};" for field in dataclasses.fields(answer))
    return [f"export interface {answer.__name__} {{", *members, "}"]


def _hint(hint: Any) -> str:
    """A hint of Python as a type; dataclasses among `_ANSWERS` by their names, others as what only Python knows."""
    parts = get_args(hint)
    if isinstance(hint, UnionType):
        return " | ".join(map(_hint, parts))
    if get_origin(hint) is tuple:
        return f"readonly {_hint(parts[0])}[]"
    if hint in _ANSWERS:
        return str(hint.__name__)
    return _PLAIN.get(hint, "unknown")


def colours() -> str:
    """The page's copy of the palette."""
    causes = {
        cause: {"colour": colour, "isWait": is_wait} for cause, (colour, is_wait) in palette.CAUSE_COLOURS.items()
    }
    tables: dict[str, Mapping[str, object]] = {
        "CATEGORY_COLOUR": palette.CATEGORY_COLOURS,
        "CATEGORY_LABEL": palette.CATEGORY_LABELS,
        "MEMORY_COLOUR": palette.MEMORY_COLOURS,
        "CAUSE_COLOUR": causes,
    }
    lines = [NOTICE]
    for name, table in tables.items():
        lines += [f"export const {name} = {{", *(f"  {key}: {_literal(value)}," for key, value in table.items())]
        lines += ["} as const;"]
    by_category: dict[str, list[str]] = {}
    for kind, category in palette.KIND_CATEGORIES.items():
        by_category.setdefault(category, []).append(kind)
    lines += ["export const KINDS = ["]
    for category, kinds in by_category.items():
        texts = textwrap.wrap(" ".join(kinds), 90)  # a line of the page has at most 120 letters
        lines += [f'  ["{category}", "{text}"],' for text in texts]
    return "\n".join([*lines, "] as const;"]) + "\n"


def _literal(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key}: {_literal(each)}' for key, each in value.items())} }}"
    return json.dumps(value)


def _union(name: str, members: Iterable[StrEnum]) -> list[str]:
    return [f"export type {name} =", *_ended([f'  | "{member.value}"' for member in members])]


def _ended(lines: list[str]) -> list[str]:
    return [*lines[:-1], lines[-1] + ";"]


def _report(tool: str, report: Report) -> list[str]:
    # Nobody asks for sentences by their id.
    sections = [section for section in report.sections() if not isinstance(section, Prose)]
    if not sections:
        return [f"  {key_of(tool)}: Record<never, never>;"]
    return [f"  {key_of(tool)}: {{", *(line for section in sections for line in _section(section)), "  };"]


def _section(section: Figures | Rows) -> list[str]:
    head = f"    {key_of(section.id)}:"
    kind = "figures" if isinstance(section, Figures) else "table"
    return [
        f"{head} {{",
        f'      kind: "{kind}";',
        "      fields: {",
        *map(_field, section.fields),
        "      };",
        "    };",
    ]


def _field(field: Field) -> str:
    return f"        {key_of(field.name)}: {_CELLS[field.kind]} | null;"


def key_of(name: str) -> str:
    """A name as the key of an object."""
    return name if name.isidentifier() else f'"{name}"'


def wanted_files() -> dict[Path, str]:
    """All that is made, by its file."""
    trace = small_trace()
    reports = {tool.name: tool.merge([tool.partial(trace)]) for tool in TOOLS}
    return {PALETTE: colours(), **all_schemas(reports)}


def main() -> int:
    """Writes or checks the files."""
    parser = argparse.ArgumentParser(description="Writes the TypeScript types and the JSON Schemas of the reports.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if they are out of date")
    parser.add_argument("--types", action="store_true", help="write the page's types only")
    options = parser.parse_args()
    is_check = options.check
    wanted = {TYPES: types()} if options.types else wanted_files()
    late = [path for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text]
    refused = refusals({path: wanted[path] for path in late if path not in (TYPES, PALETTE)})
    for sentence in refused:
        print(sentence, file=sys.stderr)
    if is_check or refused:
        for path in late:
            print(f"{path.relative_to(ROOT)} is out of date; run `make format`", file=sys.stderr)
        return 1 if late else 0
    for path in late:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
