"""Writes the TypeScript types of the reports, from the declarations of their sections and fields.

With them a wrong id of a section, or a wrong name of a column, does not pass the page's type check.  With `--check` it
writes nothing, and fails if the types are out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from gen_docs import small_trace
from stepscope.analysis.registry import TOOLS
from stepscope.report import Field, Figures, Prose, Report, Role, Rows

TYPES = Path(__file__).resolve().parent.parent / "frontend" / "src" / "generated" / "reports.ts"
NOTICE = "/** Made by scripts/gen_types.py; change the declarations in Python and run `make format`. */"

# How a kind of field arrives as JSON.  Any value may be unknown.
_CELLS = {"float": "number", "int": "number", "str": "string", "bool": "boolean", "ints": "readonly number[]"}


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
    ]
    return "\n".join(lines) + "\n"


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


def main() -> int:
    """Writes or checks the file."""
    parser = argparse.ArgumentParser(description="Writes the TypeScript types of the reports.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if they are out of date")
    wanted = types()
    is_current = TYPES.is_file() and TYPES.read_text("utf-8") == wanted
    if parser.parse_args().check:
        if not is_current:
            print("the TypeScript types of the reports are out of date; run `make format`", file=sys.stderr)
        return 0 if is_current else 1
    if not is_current:
        TYPES.parent.mkdir(parents=True, exist_ok=True)
        TYPES.write_text(wanted, encoding="utf-8")
        print(f"wrote {TYPES.relative_to(TYPES.parents[3])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
