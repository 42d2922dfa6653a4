"""Names of the frameworks that advice gives exist in the versions that are installed."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from warm_python import WARM

from stepscope.analysis.advice.rules import waiting
from stepscope.analysis.input import pipeline_advice

_NAME = re.compile(r"\b(?:tf|keras|jax|jnp|torch)(?:\.[A-Za-z_]\w*)+")
_PACKAGES = {
    "tensorflow": {"tf": "tensorflow", "keras": "keras"},
    "jax": {"jax": "jax", "jnp": "jax.numpy"},
    "torch": {"torch": "torch"},
}
# Prints the names that do not exist; each argument is an importable package, a slash and a name in it.
_MISSING = """
import importlib, sys
for each in sys.argv[1:]:
    package, name = each.split("/")
    found, path = importlib.import_module(package), package
    for part in name.split("."):
        path += "." + part
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(path)
            except ImportError:
                print(path)
                break
"""


def _texts() -> Iterator[str]:
    folder = Path(waiting.__file__).parent
    for path in (*folder.glob("*.py"), Path(pipeline_advice.__file__)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.mark.parametrize("framework", _PACKAGES)
def test_names_in_advice_exist(framework: str) -> None:
    packages = _PACKAGES[framework]
    names = {name.partition(".")[::2] for text in _texts() for name in _NAME.findall(text)}
    asked = sorted(f"{packages[short]}/{name}" for short, name in names if short in packages)
    assert asked

    done = WARM.run(framework, ["-c", _MISSING, *asked], os.environ, timeout=600)

    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
