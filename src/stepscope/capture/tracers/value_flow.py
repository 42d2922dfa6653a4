"""What a statement of a function takes and gives, by the function's code: who takes its result, and what its loop does.

    for name in model.state_dict():            # a loop
        new = model.state_dict()[name]         # its call takes nothing that the loop changes
        total = total + new                    # takes `total` of the round before
    return total                               # takes what both gave

Samples tell where a function spends its time.  Whether that can be left out, done once, or done for all rounds at once
depends on where its values come from and go to.  Names and attributes are followed in the order of the code; what goes
into another object's attribute or into a global may be taken anywhere.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field

from stepscope.records import dataclass

_MOST_INSTRUCTIONS = 4000  # of a function: a longer one is generated
_PARTS = ("LOAD_ATTR", "LOAD_METHOD")
_GIVEN = ("NAME", "GLOBAL", "FAST", "DEREF")
_LOADED = (*_GIVEN, "CLASSDEREF", "CLOSURE")
_INTO_ITEMS = ("STORE_SUBSCR", "STORE_SLICE")
_CONTINUING = ("STORE", "UNPACK", "CACHE", "NOP", "COPY", "SWAP")  # of an assignment to several names
_FILLS = ("append", "appendleft", "extend", "insert", "add", "update", "put", "push", "setdefault")
_TELLS = ("log", "info", "debug", "warning", "add_scalar", "add_scalars", "write", "set_postfix", "set_description")
_BACK = ("JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
_BACK_IF = "POP_JUMP_BACKWARD_IF"  # Python 3.11 asks for the condition of `while` again at the end of each round

RETURNED, KEPT = "return", "kept"  # where a value goes besides lines of the function


@dataclass
class _Statement:
    """A statement: its instructions by their offsets, and names such as `x` and `self.x`.

    Attributes:
        takes: what it reads; gives: what it stores; touches: what it puts something into; alters: what it may change.
        returns: it returns its value; keeps: it stores it where others than the function may read it.
        dropped: the place of the call whose result nobody takes; sums: the name that it only adds to.
    """

    first: int
    last: int = 0
    line: int = 0
    takes: set[str] = field(default_factory=set)
    gives: set[str] = field(default_factory=set)
    touches: set[str] = field(default_factory=set)
    alters: set[str] = field(default_factory=set)
    returns: bool = False
    keeps: bool = False
    dropped: tuple[int | None, ...] = ()
    sums: str = ""


def describe_flow(
    code: Sequence[dis.Instruction], arguments: Collection[str], place: int, call: tuple[int | None, ...]
) -> str:
    """Facts of the statement at an offset, such as `loop=44 same=1 carries=total to=47,return`; empty if it has none.

    Args:
        code: the instructions of the function; arguments: the names of what it is given, which lives on after it.
        place: of the instruction that runs; call: its first and last line and column.

    `loop` is the line of the innermost loop around it; `same`: the call takes nothing that this loop changes;
    `carries`: what each round of that loop, with this statement, needs of the one before; `to`: the lines of the
    function that take its result, `return` where it is given back, and `kept` where it is stored for others.
    """
    if len(code) > _MOST_INSTRUCTIONS:
        return ""
    statements = list(_statements(code, arguments))
    own = next((each for each in statements if each.first <= place <= each.last), None)
    if own is None:
        return ""
    loops = [(begin, end) for begin, end in _loops(code) if begin <= place <= end]
    begin, end = min(loops, key=lambda loop: loop[1] - loop[0], default=(0, 0))
    said = []
    if end:
        inside = [each for each in statements if begin <= each.last and each.first <= end]
        said.append(f"loop={_line_of_loop(code, begin, end)}")
        changed = set[str]().union(*(each.gives | each.touches | each.alters for each in inside))
        if None not in call and not any(_is_of(name, changed) for name in _taken_by_call(code, call)):
            said.append("same=1")
        said += [f"carries={name}" for name in sorted(_carried(inside, own))[:1]]
    around = max(loops, key=lambda loop: loop[1], default=None)
    said.append(f"to={','.join(_takers(statements, own, around, call))}")
    return " ".join(said)


def _statements(code: Sequence[dis.Instruction], arguments: Collection[str]) -> Iterator[_Statement]:
    """The statements in the order of the code; a condition is one of its own."""
    imported = {str(each.argval).partition(".")[0] for each in code if each.opname == "IMPORT_NAME"}
    now, ended, names, shared = _Statement(code[0].offset), False, list[str](), set[str]()
    depth, begun, expected, last_kind, called, before_op = 0, 0, dict[int, int](), "", code[0], False
    for each in code:
        kind = each.opname
        depth = expected.get(each.offset, depth)
        if ended and not kind.startswith(_CONTINUING):
            now.takes = set(names)
            yield now
            now, ended, names, begun = _Statement(each.offset), False, [], depth
        now.last = each.offset
        before_kind, last_kind = last_kind, kind
        called = each if kind.startswith("CALL") else called
        if not kind.startswith("JUMP"):
            now.line = now.line or (each.positions.lineno if each.positions else None) or 0
        added, before_op = before_op, each.opname == "BINARY_OP" and each.argrepr in ("+", "+=")
        for is_store, name in _names(each):
            if is_store:
                now.gives.add(name)
                now.sums = name if added and names[:1] == [name] and names.count(name) == 1 else ""
                now.keeps |= kind.startswith("STORE_GLOBAL")
            else:
                names.append(name)
                shared |= {name} if kind.startswith("LOAD_GLOBAL") or name in imported else set()
        if kind in _PARTS and names and before_kind.startswith(("LOAD_", "STORE_FAST_LOAD")):
            names[-1] = f"{names[-1]}.{each.argval}"
        elif kind == "STORE_ATTR" and names:
            now.gives.add(f"{names.pop()}.{each.argval}")
            now.keeps = True
        elif kind in _INTO_ITEMS and (target := _container(code, each)):
            now.touches.add(target)  # the rest of it stays
            names = [name for name in names if name != target]
            now.keeps |= "." in target or target in shared
        elif kind == "POP_TOP" and names and depth - 1 == begun:
            _note_call(now, names, shared, arguments)
            now.dropped = tuple(called.positions) if called.positions else ()
        elif kind.startswith(("RETURN_VALUE", "YIELD_VALUE")):
            now.returns = True
        before = depth
        depth += _effect(each, jump=False)
        if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            expected.setdefault(int(each.argval), before + _effect(each, jump=True))
        is_condition = kind.startswith("POP_JUMP") and depth == begun
        ended |= is_condition or kind == "FOR_ITER" or kind.startswith(("STORE_", "RETURN_", "YIELD_"))
        ended |= (kind == "POP_TOP" and depth == begun) or kind in _BACK
    now.takes = set(names)
    yield now


def _effect(each: dis.Instruction, jump: bool) -> int:
    try:
        return dis.stack_effect(each.opcode, each.arg, jump=jump)
    except ValueError:
        return 0


def _note_call(now: _Statement, names: Sequence[str], shared: set[str], arguments: Collection[str]) -> None:
    """A call whose result nobody takes: it puts what it is given into a container, tells somebody of it, or does what
    is not known, also to what it is a method of."""
    root, (receiver, _, method) = names[0].partition(".")[0], names[0].rpartition(".")
    if hasattr(builtins, root) or method in _TELLS:
        return
    now.alters |= {receiver} if receiver and root not in shared else set(names[1:])
    if receiver and method in _FILLS:
        now.touches.add(receiver)
    now.keeps = method not in _FILLS or "." in receiver or root in shared or root in arguments


def _names(each: dis.Instruction) -> list[tuple[bool, str]]:
    """The names that an instruction loads or stores, whether it stores each; some instructions do two at once."""
    words = each.opname.split("_")
    if words[-1] == "ATTR" or words[0] not in ("LOAD", "STORE"):
        return []
    values = each.argval if isinstance(each.argval, tuple) else (each.argval,)
    actions = [word for word in words if word in ("LOAD", "STORE")]
    if len(words) < 2 or words[1] not in _LOADED:
        return []
    actions *= len(values) if len(actions) == 1 else 1
    return [(do == "STORE", name) for do, name in zip(actions, values, strict=False) if isinstance(name, str)]


def _container(code: Sequence[dis.Instruction], store: dis.Instruction) -> str:
    """What a statement stores an item into."""
    found = ""
    for each in code:
        if each.offset >= store.offset:
            break
        if not _lies_in(each, store):
            continue
        loaded = [name for is_store, name in _names(each) if not is_store]
        if not found and loaded:
            found = loaded[0]
        elif found and each.opname in _PARTS and "[" not in found:
            found = f"{found}.{each.argval}"
        elif found:
            break
    return found


def _lies_in(each: dis.Instruction, outer: dis.Instruction) -> bool:
    inner, around = each.positions, outer.positions
    if inner is None or around is None or None in inner or None in around:
        return False
    return (around.lineno, around.col_offset) <= (inner.lineno, inner.col_offset) and (
        (inner.end_lineno, inner.end_col_offset) <= (around.end_lineno, around.end_col_offset)
    )


def _taken_by_call(code: Sequence[dis.Instruction], call: tuple[int | None, ...]) -> set[str]:
    """What the call at a place of the source reads: its function and its arguments."""
    first, last, begin, end = (each or 0 for each in call)
    found, names = set[str](), list[str]()
    for each in code:
        at = each.positions
        if at is None or None in at:
            continue
        inside = (first, begin) <= (at.lineno or 0, at.col_offset or 0)
        if not inside or (at.end_lineno or 0, at.end_col_offset or 0) > (last, end):
            continue
        names += [name for is_store, name in _names(each) if not is_store]
        if each.opname in _PARTS and names:
            names[-1] = f"{names[-1]}.{each.argval}"
        found.update(names[-1:])
    return found


def _loops(code: Sequence[dis.Instruction]) -> list[tuple[int, int]]:
    """The first and last offset of each loop."""
    return [(int(each.argval), each.offset) for each in code if each.opname.startswith((*_BACK, _BACK_IF))]


def _line_of_loop(code: Sequence[dis.Instruction], begin: int, end: int) -> int:
    """The line of `for`, or of the condition of `while`, by the first and last offset of a loop."""
    last = next(each for each in code if each.offset == end)
    at = end if last.opname.startswith(_BACK_IF) else begin
    return next(each.positions.lineno or 0 for each in code if each.offset == at and each.positions)


def _is_of(name: str, changed: Collection[str]) -> bool:
    """Whether a name, or what it is an attribute of, is among some."""
    return any(name == each or name.startswith(f"{each}.") or each.startswith(f"{name}.") for each in changed)


def _takes(statement: _Statement, held: set[str]) -> bool:
    return any(_is_of(name, held) for name in statement.takes)


def _carried(inside: Sequence[_Statement], own: _Statement) -> set[str]:
    """The names that a round of a loop reads before it sets them, from the one before, and from which a statement's
    value comes and to which it goes; a sum that is only added to keeps no round waiting."""
    given, early, later = set[str](), set[str](), set[str]()
    for each in inside:
        early |= {name for name in each.takes if name not in given}
        given |= each.gives
        later |= each.gives
    found = set()
    summed = {each.sums for each in inside} - {each for other in inside for each in other.takes - {other.sums}}
    for name in (early & later) - summed:
        before, reaches = {name}, set[str]()
        for each in inside:
            if each is own:
                reaches = set(own.gives) if _takes(own, before) else set()
            elif _takes(each, reaches):
                reaches |= each.gives
            if _takes(each, before):
                before |= each.gives
        if name in reaches:
            found.add(name)
    return found


def _takers(
    statements: Sequence[_Statement], own: _Statement, loop: tuple[int, int] | None, call: tuple[int | None, ...]
) -> list[str]:
    """Where the value of a statement goes, in the rest of the function and in the next round of the loop around it."""
    after = [each for each in statements if each.first > own.first]
    again = [each for each in statements if loop and loop[0] <= each.first < own.first]
    if own.dropped and own.dropped == call:  # it may change what it is given
        return [KEPT]
    held, lines, ends = own.gives | own.touches, set[int](), set[str]()
    ends |= {RETURNED} if own.returns else set()
    ends |= {KEPT} if own.keeps else set()
    for each in (*after, *again):
        if not _takes(each, held):
            held -= each.gives
            continue
        lines.add(each.line)
        held |= each.gives | each.touches
        ends |= {RETURNED} if each.returns else set()
        ends |= {KEPT} if each.keeps else set()
    return [*map(str, sorted(lines)), *sorted(ends)]
