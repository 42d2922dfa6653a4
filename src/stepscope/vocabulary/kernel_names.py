"""Shortens kernel names for display: C++ templates make them very long."""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

LONGEST = 56
_NOISE = Pattern(
    r"^(?:void|static|inline) |std::enable_if<(?:(?!std::enable_if<)[^>])*>::type "
    r"|\(anonymous namespace\)::|<unnamed>::| const(?=[ ,&>*)])"
)
_CLONE = Pattern(r" ?\[clone [^\]\[]*\]| ?\(\.kd\)|\.kd$")
_NAMESPACES = Pattern(r"(?<!\w)(?:[A-Za-z_]\w*::)+(?=[A-Za-z_])")


def brief(name: str, longest: int = LONGEST) -> str:
    """A kernel's name in at most `longest` characters.

    It drops parameters first; if the name is still too long, namespaces; then the end.

    >>> brief("void at::native::fill<4, at::Functor<float> >(int, float*)")
    'at::native::fill<4, at::Functor<float> >'
    """
    if len(name) <= longest:
        return name
    text = _strip_parameters(_NOISE.sub("", _CLONE.sub("", name)))
    if len(text) > longest:
        text = _NAMESPACES.sub("", text)
    return text if len(text) <= longest else text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _strip_parameters(name: str) -> str:
    """The name up to its first parenthesis outside of template brackets."""
    depth = 0
    for at, char in enumerate(name):
        if char == "(" and depth == 0 and at:
            return name[:at].rstrip()
        depth += (char in "<({[") - (char in ">)}]" and depth > 0)
    return name
