"""What is said first: conflicts between rules, healthy runs, and rules of others as the documentation has them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from draw import MS, Sort, draw
from places import ROOT
from reporting import context_of

from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.statements import Statement
from stepscope.analysis.advice import CLASSES, Advice, Rule, advise, no_advice, ranking
from stepscope.analysis.advice import rule as rule_module
from stepscope.analysis.advice.rule import own_rules
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder

K = EventKind
PAGE = ROOT / "docs" / "advice.md"

SORTS = {
    "p": Sort(K.PYTHON_CALL, "$report.py:7 rank"),
    "c": Sort(K.OP, "aten::cat"),
    "q": Sort(K.ITERATOR, "Iterator::Root::BatchV2"),
    "z": Sort(K.EAGER_EXECUTE, "EagerExecute"),
}


def kinds(*hosts: HostTrace) -> list[str]:
    """The classes of all advice, first things first."""
    return [item.kind for item in advise(context_of(*hosts)).items]


# -- conflicts -----------------------------------------------------------------------------------------------------


def rule_that_says(name: str, kind: str, gain_ms: float, yields_to: tuple[str, ...] = ()) -> Rule:
    """A rule that always predicts the same gain, of steps of 10 ms."""
    item = Advice(
        id=name, kind=kind, title=name, evidence="", predicted_speedup=None, actions=(), tool="steps",
        step_time_ms=10.0, predicted_step_time_ms=10.0 - gain_ms,
    )  # fmt: skip
    return Rule(name, 0.0, lambda context, threshold: item, yields_to=yields_to)


CONFLICTS = [(rule, kind) for rule in own_rules() for kind in rule.yields_to]


@pytest.mark.parametrize(("rule", "kind"), CONFLICTS, ids=[f"{rule.id}-{kind}" for rule, kind in CONFLICTS])
def test_a_rule_yields_to_what_explains_at_least_half_of_its_gain(rule: Rule, kind: str) -> None:
    context = context_of(draw("host main | M0--------\nhost main | a---------"))
    yielding = rule_that_says("yielding", "python_overhead", 4.0, rule.yields_to)

    def said(gain_ms: float) -> list[str]:
        return [item.id for item in advise(context, [yielding, rule_that_says("other", kind, gain_ms)]).items]

    assert said(2.0) == ["other"]
    assert said(1.9) == ["yielding", "other"]


@pytest.mark.parametrize(
    ("late", "line", "gain_ms", "said"),
    [
        ("rank 1", 7, 3.7, ["lag"]),
        ("rank 1", 7, 3.5, ["function", "lag"]),  # the function takes time on the other ranks, too
        ("rank 1", 9, 3.7, ["function", "lag"]),
        ("", 7, 3.7, ["function", "lag"]),
    ],
    ids=["all of it is the lag", "a part of it is", "another function", "no rank is late"],
)
def test_a_function_that_makes_one_rank_late_is_what_that_rank_does_more(
    late: str, line: int, gain_ms: float, said: list[str]
) -> None:
    def rule(name: str, gain_ms: float, line: int, late: str = "") -> Rule:
        plain = rule_that_says(name, "python_overhead", gain_ms)
        item = plain.evaluate and plain.evaluate(context, 0.0)
        assert item is not None
        culprit = Culprit("load", "train.py", line, None, None, 1, 4 * MS)
        return replace(plain, evaluate=lambda context, threshold: replace(item, culprit=culprit, late=late))

    context = context_of(draw("host main | M0--------\nhost main | a---------"))

    items = advise(context, [rule("function", 4.0, 7), rule("lag", gain_ms, line, late)]).items
    assert [item.id for item in items] == said


@pytest.mark.parametrize(
    ("work", "says", "confidence"),
    [
        ("jjjjjjjj  ", "most of the step is the program jit_step: work repeated inside it cannot be seen", 0.32),
        ("jjjjoooo  ", None, 0.64),  # 20 % of Python that was not recorded
        ("oooooooo  ", None, 0.64),
    ],
)
def test_where_one_program_is_most_of_the_step_nothing_to_change_is_less_sure(work, says, confidence) -> None:
    sorts = {"j": Sort(K.OP, "dot.1", stats={"hlo_module": "jit_step"}), "o": Sort(K.OP, "dot.2")}
    steps = "".join(f"M{number}--------" for number in range(5))

    (item,) = advise(context_of(draw(f"host main | {steps}\nhost main | {work * 5}", sorts)), []).items

    assert item.kind == "none"
    assert item.confidence == confidence
    assert ("work repeated inside it" in item.evidence) == (says is not None)
    assert (says or "") in item.evidence


def test_good_practice_alone_is_no_bottleneck_and_comes_last() -> None:
    context = context_of(draw("host main | M0--------\nhost main | a---------"))
    practice = replace(rule_that_says("practice", "small_batch", 5.0), is_practice=True)
    other = rule_that_says("other", "straggler", 2.0)

    assert [(item.kind, item.id) for item in advise(context, [practice]).items][1:] == [("small_batch", "practice")]
    assert advise(context, [practice]).items[0].kind == "none"
    assert [item.id for item in advise(context, [practice, other]).items] == ["other", "practice"]


def test_of_two_rules_that_yield_to_each_other_the_larger_gain_stays() -> None:
    context = context_of(draw("host main | M0--------\nhost main | a---------"))
    one = rule_that_says("one", "host_sync", 3.0, ("straggler",))
    other = rule_that_says("other", "straggler", 4.0, ("host_sync",))

    assert [item.id for item in advise(context, [one, other]).items] == ["other"]
    assert [item.id for item in advise(context, [other, one]).items] == ["other"]


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        (("communication_bound", "communication_bound"), "Nothing known shortens computation on the host here. Next:"),
        (("communication_bound", "redundant_compute"), "Shortening computation on the host gains less here. First:"),
        (("redundant_compute", "redundant_compute"), ""),
    ],
)
def test_advice_beside_what_limits_the_step_says_why_that_is_not_first(kinds: tuple[str, str], says: str) -> None:
    context = context_of(draw("host main | M0--------\nhost main | oooooooo  ", {"o": Sort(K.OP, "dot.2")}))
    rules = [rule_that_says("first", kinds[0], 2.0), rule_that_says("second", kinds[1], 1.0)]

    advised = advise(context, rules)

    assert advised.verdict.cause == "host_compute"
    assert [item.beside for item in advised.items] == [says, ""]


@pytest.mark.parametrize(
    ("thread", "title"),
    [
        ("pppppppp  ", "Nothing known shortens Python in the loop"),
        ("oooooooo  ", "Nothing stands out"),
        ("          ", "Record more detail: nothing was recorded for 100 % of each step"),
        ("pppp ooo  ", "No single cause stands out"),
    ],
)
def test_advice_without_a_change_says_what_takes_most_of_the_step(thread: str, title: str) -> None:
    sorts = {"o": Sort(K.OP, "dot.2"), "p": Sort(K.PYTHON_CALL, "$train.py:9 report")}
    context = context_of(draw(f"host main | M0--------\nhost main | {thread}", sorts))

    assert advise(context, []).items[0].title == title


def test_what_is_said_of_steps_is_said_of_a_capture_without_any() -> None:
    context = context_of(draw("host main | o---------", {"o": Sort(K.OP, "dot.2")}))
    item = advise(context, [rule_that_says("one", "python_overhead", 4.0)]).items[0]
    words = "10.0 % of each step is `f`; it starts 3 ops per step"
    rule = Rule("one", 0.0, lambda context, threshold: replace(item, evidence=words))

    assert not context.has_steps
    assert advise(context, [rule]).items[0].evidence == "10.0 % of the capture is `f`; it starts 3 ops"


def test_python_of_an_unknown_gain_counts_as_half_of_its_time_beside_a_gain_that_is_known() -> None:
    """Once it is faster it still takes time: 4 ms of Python come after a certain 3 ms, and 7 ms before them."""

    def first(python_ms: float) -> str:
        python = Advice(
            id="python", kind="python_overhead", title="", evidence="", predicted_speedup=None, actions=(),
            tool="steps", step_time_ms=10.0, part_ms=python_ms,
        )  # fmt: skip
        known = replace(python, id="known", kind="input_python", part_ms=None, predicted_step_time_ms=7.0)
        return min((python, known), key=ranking._rank_key).id

    assert [first(4.0), first(7.0)] == ["known", "python"]


TOGETHER: dict[str, tuple[list[str], list[str]]] = {
    "a step that waits for input is not also too small": (
        ["M0" + "-" * 38, "I" + "-" * 19 + "FFa-" * 5],
        ["input_preprocessing"],
    ),
    "single ops in a step that is compiled again are a part of that": (
        ["M0" + "-" * 38, "X" + "-" * 19 + "zza-" * 5],
        ["recompilation"],
    ),
    "Python between waiting and the first op is not what makes the input late": (
        ["M0" + "-" * 18, "I" + "-" * 9 + "pp" + "a" * 8],
        ["input_preprocessing"],
    ),
    "copies beside waiting are advice of their own": (
        ["M0" + "-" * 18, "I" + "-" * 4 + "c" + "-" * 9 + "a" * 5],
        ["memory_churn", "input_preprocessing"],
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_left_of_rules_that_speak_of_the_same_time(name: str) -> None:
    (marks, thread), expected = TOGETHER[name]
    second = marks.replace("M0", "M1")

    assert kinds(draw(f"host main | {marks}{second}\nhost main | {thread}{thread}", SORTS)) == expected


# -- healthy runs --------------------------------------------------------------------------------------------------

HEALTHY: dict[str, tuple[str, str, str]] = {
    "computation of the host": (
        """
        host main | M0--------M1--------
        host main | a---------a---------
        """,
        "100.0 % of each step is computation on the host: `a`",
        "make the computation itself cheaper",
    ),
    "computation of a device": (
        """
        host main | M0--------M1--------
        host main | L1S-------L2S-------
        gpu0 s    | K1--------K2--------
        """,
        "100.0 % of each step is computation on the device",
        "make the kernel `kernel` cheaper",
    ),
    "communication": (
        """
        host main | M0--------M1--------
        host main | a-------G-a-------G-
        """,
        "80.0 % of each step is computation on the host",
        "make the computation itself cheaper",
    ),
    "launches": (
        """
        host main | M0--------M1--------
        host main | L1--S-----L2--S-----
        gpu0 s    |   K1------  K2------
        """,
        "80.0 % of each step is computation on the device",
        "make the kernel `kernel` cheaper",
    ),
}


@pytest.mark.parametrize("bound", HEALTHY)
def test_a_healthy_run_is_told_what_bounds_it(bound: str) -> None:
    picture, evidence, action = HEALTHY[bound]
    (item,) = advise(context_of(draw(picture, {"S": Sort(K.SYNC, "cudaStreamSynchronize")}))).items

    assert (item.kind, item.predicted_speedup) == ("none", None)
    assert item.evidence.startswith(evidence)
    assert any(action in each for each in item.actions)


def test_a_profile_without_steps_gets_no_advice() -> None:
    assert kinds(draw("host main |")) == []


# -- every rule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "pytorch", "python", ""])
@pytest.mark.parametrize("host", ["I---a-----", "X---a-----", "V---a-----", "a---p-----", "a---c-----", "a---G-----"])
def test_actions_are_those_of_the_framework(framework: str, host: str) -> None:
    foreign = {
        "tensorflow": r"\b(?:torch|jax|DataLoader|jnp)\b",
        "jax": r"\b(?:torch|DataLoader|keras|tf\.(?!data))",
        "pytorch": r"\b(?:jax|jnp|keras|tf)\b",
        "python": r"\b(?:torch|jax|jnp|grain|DataLoader|keras|tf)\b",
        "": r"\b(?:torch|DataLoader|keras)\b",
    }[framework]
    context = context_of(draw(f"host main | M0--------M1--------\nhost main | {host * 2}", SORTS))
    items = advise(replace(context, framework=framework)).items

    assert items[0].kind != "none"
    assert [action for item in items for action in item.actions if re.search(foreign, action)] == []
    assert all(item.actions and 0 < item.confidence <= 1 for item in items)


def test_slow_python_without_a_framework_is_told_in_its_own_words_and_promises_nothing() -> None:
    context = context_of(draw("host main | M0--------M1--------\nhost main | p-------- p--------", SORTS))
    first = advise(replace(context, framework="python")).items[0]

    assert (first.id, first.predicted_speedup) == ("python.plain", None)
    assert first.title == "Speed up rank (report.py:7) or run it less often"
    assert first.actions[0].startswith("replace loops over numbers in report.py:7 rank with NumPy")


@pytest.mark.parametrize(
    ("host", "title"),
    [
        ("p-------- ", "Speed up rank (report.py:7) or run it less often"),
        ("p---------", "Take Python out of the loop"),
    ],
    ids=["a part", "the step itself"],
)
def test_a_function_that_is_the_step_itself_is_not_what_to_run_less_often(host: str, title: str) -> None:
    trace = draw(f"host main | M0--------M1--------\nhost main | {host * 2}", SORTS)
    first = advise(replace(context_of(trace), framework="jax")).items[0]

    assert (first.id, first.title) == ("python.gaps", title)


@pytest.mark.parametrize(("framework", "rule"), [("python", "python.plain"), ("jax", "python.gaps")])
def test_python_that_sleeps_is_to_be_waited_for_elsewhere(framework: str, rule: str) -> None:
    picture = "host main | M0--------M1--------\nhost main | p-------- p--------"
    context = context_of(draw(picture, SORTS, usage=[(0, 20, 2, 0)]))
    first = advise(replace(context, framework=framework)).items[0]

    assert first.id == rule
    assert "% of that time the thread sleeps" in first.evidence
    assert any("let another thread wait" in action for action in first.actions)
    assert not any("NumPy on whole arrays" in action for action in first.actions)


def test_slow_python_that_was_sampled_only_is_named_by_its_samples() -> None:
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "thread 7 (python)", 7)
    plane = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    samples = builder.line(plane, "MainThread", 7)
    for step in range(6):
        main.event("train", 20 * step * MS, 20 * MS, K.STEP_MARK, {"step_num": step})
        samples.event("$train.py:9 decode", (20 * step + 1) * MS, 18 * MS, K.PYTHON_CALL)
    first = advise(replace(context_of(builder.build()), framework="python")).items[0]

    assert (first.id, first.predicted_speedup) == ("python.plain", None)
    assert first.title == "Speed up decode (train.py:9) or run it less often"


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ("                   ", "record the program with"),
        ("p-------- p--------", "look at report.py:7 rank"),
    ],
    ids=["not recorded", "recorded"],
)
def test_python_calls_are_to_be_recorded_only_where_they_were_not(calls: str, told: str) -> None:
    context = context_of(draw(f"host main | M0--------M1--------\nhost main | {calls}", SORTS))

    assert told in advise(context, rules=()).items[0].actions[0]


def test_every_class_can_be_said_and_leads_into_the_documentation() -> None:
    folder = Path(rule_module.__file__).parent
    source = "\n".join(path.read_text(encoding="utf-8") for path in [*folder.glob("rules/*.py"), folder / "ranking.py"])
    page = PAGE.read_text(encoding="utf-8")

    assert [kind for kind in CLASSES if f'"{kind}"' not in source] == []
    assert [kind for kind in CLASSES if f"\n### {kind}\n" not in page] == []


def test_the_table_of_rules_in_the_documentation_is_true() -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = {name: (kinds.split(", "), share) for name, kinds, share in re.findall(_ROW, page)}

    assert set(table) == {rule.id for rule in own_rules()}
    assert [rule.id for rule in own_rules() if float(table[rule.id][1]) != rule.threshold_percent] == []
    assert [kind for kinds, _ in table.values() for kind in kinds if kind not in CLASSES] == []


_ROW = r"(?m)^\| `([\w.-]+)` \| ([\w, ]+) \| ([\d.]+) %"


# -- rules of others -----------------------------------------------------------------------------------------------


def example() -> str:
    """The rule in the documentation."""
    section = PAGE.read_text(encoding="utf-8").partition("## Rules of your own")[2]
    return re.findall(r"```python\n(.*?)```", section, re.S)[0]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_module, "_registered", {})


SWAPS = {"w": Sort(K.OTHER, "acme.swap")}
SWAPPING = "host main | M0--------M1--------\nhost main | a---------a---------\nhost main |  w----     w----"


@pytest.mark.usefixtures("registered")
def test_the_rule_in_the_documentation_works_by_call() -> None:
    exec(compile(example(), str(PAGE), "exec"), {})
    (item,) = advise(replace(context_of(draw(SWAPPING, SWAPS)), read=lambda tool: OPS.get(tool))).items

    assert (item.id, item.kind, item.predicted_speedup) == ("acme.swap", "memory_churn", 1.43)
    assert "3.00 ms" in item.evidence


OPS = {"op-stats": SimpleNamespace(rows=[{"name": "acme.swap", "total_self_us": 6000.0}])}


@pytest.mark.usefixtures("registered", "new_plugins")
def test_the_rule_in_the_documentation_works_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_rules.py").write_text(example().replace("register(SWAP)", ""), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    installed = tmp_path / "acme_rules-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n", encoding="utf-8")
    (installed / "entry_points.txt").write_text(f"[{rule_module.GROUP}]\nswap = acme_rules:SWAP\n", encoding="utf-8")
    context = replace(context_of(draw(SWAPPING, SWAPS)), read=lambda tool: OPS.get(tool))

    assert [item.id for item in advise(context).items] == ["acme.swap"]


@pytest.mark.parametrize(
    ("file", "ps", "said"),
    [
        ("a.py", 95, "`a.py:3 kernel` is 95 % of the step: compute less in it, or use faster hardware"),
        ("a.py", 60, ""),  # something else may be cheaper
        (None, 95, ""),  # nothing that a person can edit
    ],
)
def test_a_line_that_computes_for_nearly_the_whole_step_is_named_where_nothing_stands_out(
    file: str | None, ps: int, said: str
) -> None:
    culprit = Culprit("kernel", file, 3 if file else None, None, None, 1, ps)
    account = SimpleNamespace(
        rows=[SimpleNamespace(cause="host_compute", culprit=culprit)], percent=lambda part, _="": 100.0 * part / 100
    )

    assert no_advice._say_most(SimpleNamespace(account=account, work=None)) == said  # type: ignore[arg-type]


def test_a_function_that_goes_round_is_told_to_do_all_rounds_at_once() -> None:
    culprit = Culprit("nearest", "a.py", 3, None, None, 1, 60, statement=Statement("a.py", 6, "sum", 0.8, loop=5))
    rows = [SimpleNamespace(cause="contention", culprit=None), SimpleNamespace(cause="host_compute", culprit=culprit)]
    account = SimpleNamespace(rows=rows, percent=lambda part, _: 100.0 * part / 100)

    assert no_advice._say_most(SimpleNamespace(account=account, work=None)) == (  # type: ignore[arg-type]
        "`a.py:3 nearest` is 60 % of the step, most of it at a.py:6, which calls `sum` in each round of the loop in"
        " line 5: do all rounds with one op on whole arrays, if they do not need each other"
    )


@pytest.mark.parametrize(("saves", "kind"), [((4,), "none"), ((4, 9), "checkpoint_stall")], ids=["once", "again"])
def test_a_save_that_comes_again_is_advised_on_though_most_steps_have_none(saves: tuple[int, ...], kind: str) -> None:
    marks, work = "", ""
    for step in range(12):
        save = "S" + "-" * 9 if step in saves else ""
        marks += f"M{step % 10}" + "-" * (8 + len(save))
        work += "a---------" + save
    trace = draw(f"host main | {marks}\nhost main | {work}", {"S": Sort(EventKind.CHECKPOINT, "save")})

    assert advise(context_of(trace)).items[0].kind == kind
