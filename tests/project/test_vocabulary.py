"""What frameworks call things stands in `vocabulary/`.  What stands in `analysis/` all the same is listed here.

Each entry has its reason.  The list is a ratchet: a pattern or a name that is not in it fails the test, and so does an
entry that is gone.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest
from imports import PACKAGE

ANALYSIS = PACKAGE / "analysis"

# Module in `analysis/` and pattern, with the reason why it stands there.
PATTERNS: dict[tuple[str, str], str] = {
    ("account/account_text.py", r"\d|*"): "a name that a headline has no room for",
    (
        "resources/counted_memory.py",
        r"(?P<later>after this capture )?the program ran out of memory(?P<op> in .+?)?: asked for (?P<size>.+?)"
        r"(?: in (?P<place>\S+ \([^()]+:\d+\)|[^\s()]+:\d+))?",
    ): "a sentence of our own capture",
    (
        "advice/stopped.py",
        r"GPU (?P<device>\d+) was out of memory: (?P<size>[\d,]+) bytes were refused and (?P<free>[\d,]+) were free"
        r"(?:, asked for by (?P<frame>.+))?",
    ): "the same of our reader of snapshots",
    ("xla/compiled.py", r"\w+\[[\d,?.]*\]$"): "a shape in the words of our own capture",
    ("advice/ranking.py", r"^[\d.]+ *\b"): "a figure that a rule wrote itself",
    ("advice/ranking.py", "*"): "the same: its words",
    ("facts/work.py", r"\[(\d{1,15}),(\d{1,15})[\],]"): "takes a stat apart: shapes",
    ("trace/kernel_facts.py", r"(\w+):(\S+)"): "takes a stat apart: how a kernel was launched",
    ("steps/step_range.py", r"\s*(?P<first>\d{1,18})\s*(?:-\s*(?P<last>\d{1,18})\s*)?"): "what a user types",
    ("gate/budgets.py", r"\s*(?P<sign><=|>=|\+|-|)\s**\s*(?P<unit>[A-Za-z%]*)\s*"): "what a user types",
    (
        "gate/figures.py",
        r"(?P<tool>[\w-]+)\.(?P<section>[\w-]+)(?:\[(?P<where>.*)\])?\.(?P<column>\w+)",
    ): "what a user types",
    (
        "gate/figures.py",
        r'\s*(?P<key>\w+)\s*=\s*(?:"(?P<quoted>[^"]*)"|(?P<plain>[^,"]*?))\s*(?:,|$)',
    ): "what a user types",
    ("steps/marked_steps.py", r"[0-9]{1,18}"): "a number",
    ("ops/annotations_tool.py", r"#?\d+$"): "a number",
    ("ops/annotations_tool.py", r"(?<=\w\.)\d+(?!\w)"): "the number of a block",
    ("workers/collectives.py", r"[0-9]{1,9}"): "a number",
    ("workers/collectives.py", r"rank[-_. ]?([0-9]{1,9})"): "how people name the files of ranks",
    ("input/pipeline_advice.py", "(?:*)(?:V\\d+)?$"): "advice by stage of tf.data: the stages' names are its table",
    ("input/pipeline_advice.py", r"V\d+$"): "the same",
    ("input/pipeline_advice.py", "*"): "the same",
    ("input/pipeline_advice.py", "Interleave|FlatMap|WeightedFlatMap"): "the same",
    ("purpose/cheaper_ways.py", r'"(-?\d+)"'): "takes a stat apart: operands that are numbers",
    ("purpose/cheaper_ways.py", r'"\[([\d, ]*)\]"'): "the same",
    (
        "purpose/sizes.py",
        r"\[((?:\d{1,15}(?:,\d{1,15})*)?)\]",
    ): "takes a stat apart: shapes",
    ("purpose/tensors.py", r"c\S+"): "takes a stat of our own apart: which tensors an op takes",
    ("purpose/transforms.py", r"\[(\d+(?:, \d+)*)\]"): "takes a stat apart: operands that are numbers",
    ("purpose/transforms.py", r"'(\d+)'\]?$"): "the same",
    ("purpose/values.py", r"([cwut])(\d+)\.(\d+)"): "the same",
    ("purpose/values.py", r"\b[wu]\d"): "the same",
    ("purpose/values.py", r"\[([\d, ]*)\]"): "takes a stat apart: operands that are numbers",
    ("purpose/values.py", r"-?\d+"): "the same",
    ("trace/op_sizes.py", r"\d+(?:,\d+)*"): "takes a stat apart: shapes",
    ("purpose/values.py", '"([^"]*)"'): "takes a stat apart: shapes",
    ("purpose/sizes.py", r"""'([^']*)'|\"([^\"]*)\""""): "takes a stat apart: types of operands",
    ("registry.py", "[^A-Za-z0-9.]+"): "a version in the name of a cache's entry",
    ("xla/peaks.py", "*"): "what a user writes into the table of devices",
}

# Module and text with a framework's names in it.
NAMES: dict[tuple[str, str], str] = {
    ("advice/rules/words.py", "tf.function(jit_compile=True) fuses copies into neighbouring ops"): "advice",
    (
        "advice/rules/words.py",
        "compile the step as a whole: tf.function(jit_compile=True), which fuses small kernels",
    ): "advice",
    (
        "advice/by_work.py",
        "compile the step with jit_compile=True, of tf.function or model.compile: it fuses the ops of the update",
    ): "advice",
    (
        "advice/rules/device_work.py",
        "tf.function(jit_compile=True) fuses elementwise ops into their neighbours",
    ): "advice",
    (
        "hlo/programs.py",
        "the capture holds no XLA program; JAX records them with jax.profiler.trace or ProfilerOptions(), TensorFlow "
        "with jit_compile=True, unless the option enable_hlo_proto is off",
    ): "what would record it",
    (
        "advice/rules/redundant_compute.py",
        "remove torch.autograd.set_detect_anomaly(True), or switch it on only to look for a NaN",
    ): "advice",
    ("registry.py", "inference_profile"): "XProf's name of a tool",
    ("input/tf_data_tool.py", "::"): "joins the stages of a name of tf.data's own",
    (
        "advice/rules/words.py",
        "fuse its ops: tf.function(jit_compile=True), or model.compile(jit_compile=True)",
    ): "advice",
}

# What stands in names of frameworks, compilers, libraries and runtimes, and in no other text.
_OF_A_FRAMEWORK = re.compile(
    r"::|\bjit_|\bpmap_|inference_|autograd|Eager\w*Execute|EagerLocal|Pjit|TFE_|Thunk|Xla[A-Z]|HloPass|FunctionRun"
    r"|VariableOp|DataLoaderIter|ProfilerStep|tf_data(?:$|_private)|nn\.Module: |nccl|rccl|[mM]emcpy|Cijk_|gemm"
    r"|\b(?:cuda|hip|cu)[A-Z][a-z]+[A-Z]|\.py(?:\\?\(|:)"
)


@functools.cache
def modules(folder: Path) -> list[tuple[str, ast.Module]]:
    """Name and tree of each module; three tests walk them."""
    paths = sorted(folder.rglob("*.py"))
    return [(path.relative_to(folder).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def patterns_in(folder: Path) -> list[tuple[str, str]]:
    """Every regular expression, wherever it is used; what is put into one stands as `*`."""
    return [
        (name, _text_of(node.args[0]))
        for name, tree in modules(folder)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.args and _makes_pattern(node.func)
    ]


def _makes_pattern(function: ast.expr) -> bool:
    """Whether it is a function of `re`, or the pattern that is compiled on first use."""
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == "re"
    return isinstance(function, ast.Name) and function.id == "Pattern"


def _text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts) or "*"


def names_in(folder: Path) -> list[tuple[str, str]]:
    """Every text with a framework's name in it, but for docstrings."""
    found = []
    for name, tree in modules(folder):
        docs = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in docs:
                text = node.value if isinstance(node.value, str) else node.value.decode("utf-8", "replace")
                found += [(name, text)] if _OF_A_FRAMEWORK.search(text) else []
    return found


def _has_docstring(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    return isinstance(body, list) and bool(body) and isinstance(body[0], ast.Expr)


def test_every_pattern_in_the_analysis_is_listed_with_its_reason():
    assert sorted(patterns_in(ANALYSIS)) == sorted(PATTERNS)
    assert len(PATTERNS) == 36


def test_every_framework_name_in_the_analysis_is_listed_with_its_reason():
    assert sorted(names_in(ANALYSIS)) == sorted(NAMES)
    assert len(NAMES) == 9


def test_tools_for_text_are_not_imported_under_another_name():
    """So that the list of patterns is complete."""
    hidden = [
        name
        for name, tree in modules(ANALYSIS)
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and node.module == "re")
        or (isinstance(node, ast.Import) and any(alias.name == "re" and alias.asname for alias in node.names))
    ]

    assert hidden == []


@pytest.mark.parametrize(
    ("line", "patterns", "names"),
    [
        ('A = re.compile(r"aten::mm")', ["aten::mm"], ["aten::mm"]),
        ('A = Pattern(r"aten::mm")', ["aten::mm"], ["aten::mm"]),
        ('A = name.startswith("EagerLocalExecute: ")', [], ["EagerLocalExecute: "]),
        ('A = re.sub(f"x{y}", "", name)', ["x*"], []),
        ("A = b'cudaMemcpyAsync' in raw", [], ["cudaMemcpyAsync"]),
        ('"""Looks for aten::mm."""', [], []),
        ('A = "copies data in"', [], []),
    ],
)
def test_the_check_finds_what_it_is_for(tmp_path: Path, line: str, patterns: list[str], names: list[str]) -> None:
    (tmp_path / "one.py").write_text(line)

    assert [text for _, text in patterns_in(tmp_path)] == patterns
    assert [text for _, text in names_in(tmp_path)] == names
