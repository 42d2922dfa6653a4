"""JAX: calls of compiled functions, `PjitFunction(step)`; programs, `jit_step`; ops named `jit(step)/dot_general:`."""

from __future__ import annotations

from stepscope.model import EventKind, Trait
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule, NameTable
from stepscope.vocabulary.traits import CallTrait, CodeTrait

K = EventKind

KINDS: tuple[KindRule, ...] = (
    (r"PjitFunction\(", K.TRACED_FUNCTION, Trait.NONE),
    (r"(?:Batched)?DevicePut$|H2D Dispatch$", K.COPY_HOST_TO_DEVICE_CALL, Trait.NONE),
    (r"lower_sharding_computation|backend_compile", K.COMPILE, Trait.COMPILES),
    (r"(?:wait for )?save checkpoint \(Orbax\)$", K.CHECKPOINT, Trait.NONE),  # a range of Stepscope's own
)
OPS: tuple[KindRule, ...] = ((r"[^:]*:[a-z_][a-z0-9_]*(?:\[.*\])?$", K.OP, Trait.NONE),)

ONLY_HERE = Pattern(rb"PjitFunction\(")
"""In names that only this framework writes."""
MOSTLY_HERE = Pattern(rb"\$profiler\.py|(?<![_/])jit_")
"""In names of JAX, but also in names of other Python, though not in such as `torch/_jit_internal.py(104)`."""
VERSION_STATS = ("jax_version", "jaxlib_version")

# Programs that JAX runs to copy in a NumPy array, or to convert its type.
_TAKES_IN = ("stage", "convert_element_type")
PROGRAMS_THAT_TAKE_IN = frozenset(f"jit_{name}" for name in _TAKES_IN)

NAMES: tuple[NameTable, ...] = (
    NameTable(
        exact={
            **dict.fromkeys(("shard_args", "PythonRefManager::CollectGarbage"), CallTrait.COPIES_IN),
            **{f"PjitFunction({name})": CallTrait.COPIES_IN for name in _TAKES_IN},
            "lower_sharding_computation": CallTrait.LOWERS_PROGRAM,
        },
        rules=(
            (CallTrait.WRITES_PROGRAM_CACHE, r"\$\S*compilation_cache\.py:\d+ put_executable_and_time$"),
            # Recorded as the wait starts; the runtime does not record how long it lasts.
            (CallTrait.STARTS_TO_WAIT, r"\w+Buffer::(?:Await|BlockHostUntilReady)$"),
        ),
    ),
    # JAX waits for a device inside its runtime, which does not record the wait; only the Python call shows it.
    NameTable(rules=((CodeTrait.WAITS_FOR_DEVICE, r"\$\S*\.py:\d+ block_until_ready$"),)),
)

_COMPILED = Pattern(r"\bjit\((\w+)\)")
_CALLED = Pattern(r"\w+\((.*)\)$")
# JAX's prefix of a function's name in the name of its program, and the fingerprint after it in that of a device's run.
_MADE_BY = Pattern(r"^(?:jit|pmap)_|\(\d+\)$")
_NOT_IN_NAMES = Pattern(r"[^\w.-]")  # XLA writes an underscore instead
# The op of an instruction that stands for an argument of the function, such as a copy of it, is that argument.
_ARGUMENT = Pattern(r"(\w+):")
_PRODUCTS = Pattern(
    r"dot_general|conv_general|ragged_dot|cholesky|triangular_solve|eigh|svd"
    r"|^_?(?:matmul|einsum|dot|vdot|tensordot|inner)$"  # jax.numpy's own functions, as their programs are named
)


def function_of_call(name: str) -> str:
    """The function that a call runs, as XLA writes it; empty if the name does not show it."""
    found = _CALLED.match(name)
    return _program_name(found[1]) if found else ""


def function_of_program(program: str) -> str:
    """The function that a program was compiled from, written as by `function_of_call`."""
    return _program_name(_MADE_BY.sub("", program))


def _program_name(name: str) -> str:
    """A function's name as written in its program's name; later releases of JAX strip underscores from its end.

    >>> _program_name("<lambda>")
    '_lambda'
    """
    return _NOT_IN_NAMES.sub("_", name).rstrip("_")


def argument_of(op: str) -> str:
    """The argument of its function that an op stands for; empty for other ops."""
    found = _ARGUMENT.fullmatch(op)
    return found[1] if found else ""


def is_backward(op: str) -> bool:
    """True for an op of a backward pass, by its name in JAX."""
    return "transpose(jvp" in op


def is_computed_again(op: str) -> bool:
    """True for an op of a forward pass that runs again in the backward pass, as `jax.checkpoint` makes it, by its name.

    >>> is_computed_again("jit(f)/transpose(jvp(f))/checkpoint/rematted_computation/tanh")
    True
    """
    return "rematted_computation" in op


def is_of_second_order(op: str) -> bool:
    """True for an op of a gradient of a gradient, by its name in JAX.

    >>> is_of_second_order("jit(f)/transpose(jvp(f))/dot"), is_of_second_order("jit(f)/jvp(transpose(jvp(f)))/dot")
    (False, True)
    """
    return op.count("jvp(") > 1


def differentiated(op: str) -> str:
    """The function that an op of a forward pass is differentiated in, as its gradient names it after `transpose(`.

    >>> differentiated("jit(f)/jvp(vmap(jit(slogdet)))/lu"), differentiated("jit(f)/jvp()/cholesky")
    ('jvp(vmap(jit(slogdet', '')
    """
    inside = next((part.rstrip(")") for part in op.split("/") if part.startswith("jvp(")), "")
    return inside.removesuffix("jvp(")


def compiled_functions(op: str) -> list[str]:
    """The functions that JAX itself compiles around an op, the outermost first.

    >>> compiled_functions("jit(f)/transpose(jvp(jit(inv)))/jit(solve)/lu")
    ['f', 'inv', 'solve']
    """
    return _COMPILED.findall(op)


def is_of_basis(op: str) -> bool:
    """True for an op that differentiates in several directions at once, as for a Jacobian, by its name in JAX.

    >>> is_of_basis("jit(f)/jvp(vmap(vmap(jvp())))/dot"), is_of_basis("jit(f)/jvp(vmap())/dot")
    (True, False)
    """
    return "vmap(jvp(" in op or "vmap(transpose(jvp(" in op


def is_product(op: str) -> bool:
    """True for an op that multiplies, by its name in JAX."""
    return _PRODUCTS.search(op) is not None


def is_choice_of_rows(op: str) -> bool:
    """True for a selection that stands for a condition under `vmap`, by its name in JAX; not for `jnp.where`.

    >>> is_choice_of_rows("jit(f)/vmap()/select_n"), is_choice_of_rows("jit(f)/vmap(jit(_where))/select_n")
    (True, False)
    """
    return op_at_end(op) == "select_n" and "vmap(" in op and "jit(_where)" not in op


def is_layer(op: str) -> bool:
    """True for a product or a convolution of the program's own, by its name in JAX.

    >>> is_layer("jit(f)/transpose(jvp())/dot_general"), is_layer("jit(f)/jvp()/reduce_sum")
    (True, False)
    """
    return op_at_end(op).startswith(("dot", "conv_general", "ragged_dot"))


def op_at_end(op: str) -> str:
    """What an op computes, without the functions around it.

    >>> op_at_end("jit(f)/transpose(jvp())/mul"), op_at_end("")
    ('mul', 'copy')
    """
    return op.rpartition("/")[2] or "copy"
