"""XLA: instructions, `%copy-done.2 = f32[5] copy-done(%x)` or `fusion.3`; programs, `jit_step(4)`; its compiler."""

from __future__ import annotations

from math import prod

from stepscope.model import EventKind, Trait
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule, NameTable
from stepscope.vocabulary.traits import CallTrait, OpTrait

K = EventKind

COMPILING: tuple[KindRule, ...] = (
    (r"(?:XlaCompile|XlaCompileImpl|CompileToLocalExecutable|PjRt\w*::Compile\w*|\w*Compiler::\w*|HloPass\w*"
     r"|TfrtCpuClient::Compile\w*|CpuCompiler\w*|LlvmIrCompiler\w*|IrCompiler\w*|MlirToHlo\w*)",
     K.COMPILE, Trait.COMPILES),
)  # fmt: skip
_COLLECTIVES = (
    r"all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all|collective[-_]?(?:permute|broadcast)|"
    r"ragged-all-to-all"
)
CORE_OPS: tuple[KindRule, ...] = (
    (rf"%?(?:{_COLLECTIVES})", K.COLLECTIVE, Trait.NONE),
    (r"%?infeed", K.INFEED, Trait.NONE),
    (r"%?outfeed", K.OUTFEED, Trait.NONE),
    # Space 5 is the host's memory; the first shape is the result of the copy.
    (r"%?copy-(?:start|done)\S* = \(?\S*S\(5\)", K.COPY_DEVICE_TO_HOST, Trait.NONE),
    (r"%?copy-(?:start|done)\S* = .*S\(5\)", K.COPY_HOST_TO_DEVICE, Trait.NONE),
)

AWAITS_PROGRAM = "ThunkExecutor::Execute (wait for completion)"
RUNS_PROGRAM = ("ThunkExecutor::Execute", AWAITS_PROGRAM)
"""Runs of programs on a CPU.  Their ops record when they start, but not always how long they run on other threads."""

_INSTRUCTION = Pattern(r"%([\w.\-]+) = ")
_PROGRAM_ID = Pattern(r"(?P<module>.*)\((?P<id>-?\d{1,20})\)")
_COPIED = Pattern(r"%copy-done\S* = [a-z]+(?P<bits>\d+)\w*\[(?P<dims>[\d,]*)\]")
_HALF = Pattern(r"-(?:start|done)(?:\.\d+)?$")
# A fusion is named after its opcodes.
_WORD = Pattern(r"[a-z]+(?:-[a-z]+)*")
_MOVES = frozenset({
    "copy", "concatenate", "pad", "slice", "dynamic-update-slice", "dynamic-slice", "update", "reverse", "broadcast",
    "iota", "transpose", "bitcast", "reshape", "dynamic", "start", "done",
})  # fmt: skip
_ORDERS = frozenset({"bitcast", "transpose"})
_WRAPPING = frozenset({"fusion", "wrapped"})


def instruction_name(text: str) -> str:
    """The name of an instruction from its whole text; other names unchanged."""
    found = _INSTRUCTION.match(text)
    return found[1] if found else text


def bytes_copied(text: str) -> int:
    """The bytes of numbers that an instruction has copied once it ends, by the shape in its text; 0 for any other.

    >>> bytes_copied("%copy-done.2 = f32[5,8]{1,0:T(8,128)} copy-done(%x)"), bytes_copied("fusion.3")
    (160, 0)
    """
    found = _COPIED.match(text)
    if found is None:
        return 0
    return int(found["bits"]) * prod(int(size) for size in found["dims"].split(",") if size) // 8


def split_program(name: str) -> tuple[str, int | None]:
    """The module and the number of a program; the number is None if missing.

    >>> split_program("jit_step(4)"), split_program("jit_step")
    (('jit_step', 4), ('jit_step', None))
    """
    found = _PROGRAM_ID.fullmatch(name)
    return (found["module"], int(found["id"])) if found else (name, None)


def is_half(op: str) -> bool:
    """True for the start or the end of an asynchronous op, such as `copy-start`."""
    return _HALF.search(op) is not None


def _only_moves(name: str) -> bool:
    words = set(_WORD.findall(name)) - _WRAPPING
    # A copy that reorders prepares an operand for the next op.
    return bool(words) and words <= _MOVES and not ("copy" in words and words & _ORDERS)


def strip_number(instruction: str) -> str:
    """An instruction's name without the number that makes it unique.

    >>> strip_number("loop_fusion.12")
    'loop_fusion'
    """
    stem, _, number = instruction.rpartition(".")
    return stem if number.isdecimal() and stem else instruction


NAMES: tuple[NameTable, ...] = (
    NameTable(
        applies=lambda name: ":" not in name,
        key=strip_number,
        rules=(
            (OpTrait.MOVES_DATA, _only_moves),
            (OpTrait.CALLS_BACK, r"(?:pure|io|debug)_callback$"),
            # On CPUs, a library builds a graph for each in its first run.
        ),
    ),
    NameTable(
        rules=(
            (CallTrait.COMPILES_PROGRAM, r"(?:Cpu|Gpu|Tpu)Compiler::(?:RunBackend|CompileToBackendResult)$|XlaCompile"),
        )
    ),
)


_NOT_IN_KERNEL_NAMES = Pattern(r"[^A-Za-z0-9_]")
_KERNEL_SUFFIX = Pattern(r"(?:\.kd|__\d+)$")

KERNEL_BYTES = bytes(byte if byte < 128 and chr(byte).isalnum() else ord("_") for byte in range(256))
"""What XLA makes of each byte of an instruction's name for its kernel."""


def kernel_stem(name: str) -> str:
    """The text that the names of an instruction and of its kernel share.

    >>> kernel_stem("loop_fusion.2"), kernel_stem("loop_fusion_2.kd")
    ('loop_fusion_2', 'loop_fusion_2')
    """
    return _NOT_IN_KERNEL_NAMES.sub("_", _KERNEL_SUFFIX.sub("", name))


def innermost_instruction(text: str) -> str:
    """The innermost of nested names; for an instruction's whole text, its name.

    >>> innermost_instruction("%copy.2 = f32[8]{0} copy(f32[8]{0} %x)"), innermost_instruction("while.1::dot.3")
    ('copy.2', 'dot.3')
    """
    name = instruction_name(text)
    return name.rpartition("::")[2] if name == text else name
