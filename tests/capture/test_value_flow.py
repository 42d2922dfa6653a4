"""Where a statement's value goes and what its loop does, by the code of its function."""

from __future__ import annotations

import dis

import pytest

from stepscope.capture.tracers.value_flow import describe_flow


def flow(source: str, line: int, called: str = "") -> str:
    """What is said of the call in a line of a function, of the one that begins with `called` if there are several."""
    names: dict[str, object] = {}
    exec(compile(source, "train.py", "exec"), names)
    code = names["f"].__code__
    found = [each for each in dis.get_instructions(code) if each.opname.startswith("CALL") and each.positions]
    text = source.splitlines()[line - 1]
    (place,) = [
        each for each in found if each.positions.lineno == line and text[each.positions.col_offset :].startswith(called)
    ][-1:]
    return describe_flow(list(dis.get_instructions(code)), code.co_varnames[: code.co_argcount], place.offset,
                         tuple(place.positions))  # fmt: skip


STEP = """\
def f(policy, data):
    memory = []
    for batch in data:
        moves = rollout(policy)
        memory.append(moves)
        score = evaluate(policy)
        loss = criterion(policy(memory))
        loss.backward()
        print(score)
        policy.note(score)
        validate(policy)
"""


def test_the_lines_that_take_a_result() -> None:
    assert flow(STEP, 4) == "loop=3 to=5,7,8,kept"
    assert flow(STEP, 6) == "loop=3 to=9,10,kept"  # what was given lives on


def test_what_a_call_changes_whose_result_nobody_takes_is_not_known() -> None:
    assert flow(STEP, 11).endswith("to=kept")


def test_a_call_that_takes_nothing_of_its_loop() -> None:
    source = """\
def f(self):
    for name in self.names:
        new = self.model.state_dict()[name]
        new += 1
"""
    assert flow(source, 3) == "loop=2 same=1 to=4"
    assert "same" not in flow(source.replace("state_dict()", "get(name)"), 3)
    assert "same" not in flow(source.replace("new += 1", "self.model = new"), 3)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("state = cell(state, x)", "loop=3 carries=state to=5,return"),
        ("state = cell(x)", "loop=3 to=5,return"),
        ("out.append(cell(x))", "loop=3 to="),
        ("state = state + cell(x)", "loop=3 to=5,return"),
        ("state += cell(state)", "loop=3 carries=state to=5,return"),
    ],
    ids=["a recurrence", "each round for itself", "gathered", "summed up", "a sum that the round takes"],
)
def test_whether_rounds_need_each_other(body: str, said: str) -> None:
    source = f"def f(xs, out):\n    state = 0\n    for x in xs:\n        {body}\n    return state\n"
    assert flow(source, 4, "cell").startswith(said)


def test_values_go_through_conditions_items_and_attributes() -> None:
    source = """\
def f(self, x):
    y = draw(x) if x else 0
    z = [0]
    z[0] = y
    self.kept = z
    w = 1 + x
    return w
"""
    assert flow(source, 2) == "to=4,5,kept"
    assert flow(source.replace("return w", "return z"), 2) == "to=4,5,7,kept,return"


def test_a_loop_with_a_condition() -> None:
    source = """\
def f(tree, node, change):
    while node > 1:
        node = follow(tree, node)
        change(node)
"""
    assert flow(source, 3) == "loop=2 carries=node to=2,4,kept"
