"""Patterns are compiled when they are first used, and are as those of `re` from then on."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from stepscope.vocabulary.patterns import Pattern


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    ours, theirs = Pattern(r"(a)b+", re.IGNORECASE), re.compile(r"(a)b+", re.IGNORECASE)

    for text in ("ABB", "xab", "no"):
        for name in ("match", "search", "fullmatch"):
            found, expected = getattr(ours, name)(text), getattr(theirs, name)(text)
            assert (found and found.groups()) == (expected and expected.groups())
        assert ours.findall(text) == theirs.findall(text)
        assert ours.sub("-", text) == theirs.sub("-", text)


def test_it_is_compiled_once_and_has_no_other_method() -> None:
    pattern = Pattern(r"a")

    assert pattern.match is pattern.match
    with pytest.raises(AttributeError):
        _ = pattern.other


def test_importing_the_vocabulary_compiles_none_of_its_patterns() -> None:
    script = (
        "import numpy, stepscope.model, re; compiled = []; real = re.compile\n"
        "def compile(*args): compiled.append(args[0]); return real(*args)\n"
        "re.compile = compile\n"
        "import stepscope.vocabulary.lookup, stepscope.vocabulary.op_names, stepscope.vocabulary.tensor_cores\n"
        "import stepscope.vocabulary.precision, stepscope.vocabulary.lines\n"
        "print(compiled)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
