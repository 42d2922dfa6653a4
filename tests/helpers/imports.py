"""Which module imports what, read from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from places import ROOT

PACKAGE = ROOT / "src" / "stepscope"

_OURS_IN_TEXT = re.compile(r"stepscope(\.\w+)+(:\w+)?")


@dataclass(frozen=True)
class Import:
    """One import: who, on which line, of what (dotted); `is_text` if a text names what is to be loaded later."""

    module: str
    line: int
    target: str
    is_text: bool = False


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module of a package."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports_of(module: str, path: Path) -> Iterator[Import]:
    """Every import of a module, wherever it stands.

    Imports inside functions count, and so do those under TYPE_CHECKING: a type of an upper room in a signature is
    knowledge of that room.  A text such as "stepscope.formats.kineto:read" counts too, since it is how modules are
    named that are to be loaded later.
    """
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    yield from _imports(module, package, path.read_text(encoding="utf-8"))


@cache
def _imports(module: str, package: str, text: str) -> tuple[Import, ...]:
    return tuple(_find_imports(module, package, text))


def _find_imports(module: str, package: str, text: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (Import(module, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(package, node)
            yield from (Import(module, node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _OURS_IN_TEXT.fullmatch(node.value):
            yield Import(module, node.lineno, node.value.partition(":")[0], is_text=True)
        elif isinstance(node, ast.Call) and (name := _imported_by_call(node)) and not _OURS_IN_TEXT.fullmatch(name):
            yield Import(module, node.lineno, name)


def _imported_by_call(node: ast.Call) -> str:
    """`fsspec.core` for `importlib.import_module("fsspec.core")`; empty for other calls."""
    function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if function != "import_module" or not node.args or not isinstance(node.args[0], ast.Constant):
        return ""
    return str(node.args[0].value)


def _base(package: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parents, node.module] if node.module else parents)
