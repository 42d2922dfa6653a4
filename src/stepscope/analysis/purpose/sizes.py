"""Sizes and types of operands as PyTorch records them.

Sizes are texts such as `[[60000,64],[128],[],[]]`, an operand each, `[]` for a number; types such as
`['float', 'long int', 'Scalar', '']`.
"""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

Size = tuple[int, ...]

_OPERAND = Pattern(r"\[((?:\d{1,15}(?:,\d{1,15})*)?)\]")  # no tensor has a longer side, so more digits are damage
_NAME = Pattern(r"'([^']*)'|\"([^\"]*)\"")
_DOUBLE, _SINGLE = "double", "float"


def sizes_of(dims: str) -> tuple[Size, ...]:
    """The sizes of the operands of an op, those of lists of tensors one after another.

    >>> sizes_of("[[60000,64],[128],[]]")
    ((60000, 64), (128,), ())
    >>> sizes_of("[[],[[8,4],[4,2]],[]]")
    ((), (8, 4), (4, 2), ())
    """
    return tuple(tuple(map(int, filter(None, each.split(",")))) for each in _OPERAND.findall(dims))


def names_of_types(types: str) -> list[str]:
    """The types of the operands of an op.

    >>> names_of_types("['float', 'double']")
    ['float', 'double']
    """
    return [one or other for one, other in _NAME.findall(types)]


def computes_in_64_bits(dims: str, types: str) -> bool:
    """True if an op has a tensor of 64-bit floats among its operands.  A number of Python is one of 64 bits, too, and
    does not make the op compute in them: it has no sides.

    >>> computes_in_64_bits("[[8,4],[]]", "['float', 'double']"), computes_in_64_bits("[[8,4],[]]", "['double', '']")
    (False, True)
    """
    names, sizes = names_of_types(types), sizes_of(dims)
    if not sizes:
        return _DOUBLE in names and _SINGLE not in names
    if len(names) != len(sizes):  # a list of tensors has one type and many sizes
        return False
    return any(name == _DOUBLE and size for name, size in zip(names, sizes, strict=True))
