"""What asks for a copy of data, by the name of the op: another layout, joining, padding, filling, another type."""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

# PyTorch's ops, those of XLA and of TensorFlow, in this order: `reshape` may call `clone`, and that `copy_`.
KINDS_OF_COPIES: tuple[tuple[str, Pattern[str]], ...] = (
    (
        "layout",
        Pattern(r"(?i).*\b_?(?:mkl)?(?:contiguous|reshape|flatten|ravel|transpose|permute|moveaxis|swapaxes)\b"),
    ),
    ("join", Pattern(r"(?i).*\b(?:cat|stack|[hvd]stack|concat(?:enate)?(?:v2)?|pack)\b")),
    ("pad", Pattern(r"(?i).*\b(?:pad(?:v2)?|constant_pad_nd|reflection_pad\dd|replication_pad\dd|mirrorpad)\b")),
    ("convert", Pattern(r"(?i).*\b(?:to|_to_copy|cast|convert|convert_element_type)\b")),
    ("fill", Pattern(r"(?i).*\b(?:fill_?|zero_|zeros(?:_like)?|ones(?:_like)?|full(?:_like)?|zeroslike|oneslike)\b")),
    ("repeat", Pattern(r"(?i).*\b(?:repeat\w*|tile|expand_copy|broadcast(?:_in_dim)?|broadcastto)\b")),
    ("copy", Pattern(r"(?i).*\b(?:clone|copy_?|identity)\b")),
)


def kind_of_copy(op: str) -> str:
    """What asks for a copy; empty for an op that is none of these.

    >>> kind_of_copy("aten::contiguous"), kind_of_copy("aten::copy_"), kind_of_copy("transpose.3")
    ('layout', 'copy', 'layout')
    >>> kind_of_copy("aten::index_put_"), kind_of_copy("aten::cat"), kind_of_copy("model/concat:ConcatV2")
    ('', 'join', 'join')
    """
    return next((kind for kind, pattern in KINDS_OF_COPIES if pattern.match(op) is not None), "")
