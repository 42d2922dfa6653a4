"""Shortens kernel names for display: C++ templates make them very long."""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

LONGEST = 56
_NOISE = Pattern(
    r"^(?:void|static|inline) |std::enable_if<(?:(?!std::enable_if<)[^>])*>::type "
    r"|\(anonymous namespace\)::|<unnamed>::| const(?=[ ,&>*)])"
)
_MANGLED, _LENGTH = Pattern(r"_ZN?K?"), Pattern(r"\d{1,3}")
_CLONE = Pattern(r" ?\[clone [^\]\[]*\]| ?\(\.kd\)|\.kd$")
_NAMESPACES = Pattern(r"(?<!\w)(?:[A-Za-z_]\w*::)+(?=[A-Za-z_])")


def brief(name: str) -> str:
    """A kernel's name in at most `LONGEST` characters.

    It drops parameters first; if the name is still too long, namespaces; then the end.

    >>> brief("void at::native::fill<4, at::Functor<float> >(int, float*)")
    'at::native::fill<4, at::Functor<float> >'
    """
    if len(name) <= LONGEST:
        return name
    if name.startswith("_Z"):
        name = unmangle(name)
    text = _strip_parameters(_NOISE.sub("", _CLONE.sub("", name)))
    if len(text) > LONGEST:
        text = _NAMESPACES.sub("", text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def unmangle(name: str) -> str:
    """The name of the function that a C++ compiler has encoded, without what its templates and parameters are; a name
    of another form as it is.

    >>> unmangle("_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_3fooEEvE"), unmangle("_Z4stepPf")
    ('at::native::vectorized_elementwise_kernel<>', 'step')
    """
    at, parts = _MANGLED.match(name), list[str]()
    place = at.end() if at else 0
    while (found := _LENGTH.match(name, place)) and (end := found.end() + int(found[0])) <= len(name):
        parts.append(name[found.end() : end])
        place = end
    known = [part for part in parts if not part.startswith("_GLOBAL__N_")]  # an anonymous namespace
    return ("::".join(known) + "<>" * name.startswith("I", place)) if known else name


def _strip_parameters(name: str) -> str:
    """The name up to its first parenthesis outside of template brackets."""
    depth = 0
    for at, char in enumerate(name):
        if char == "(" and depth == 0 and at:
            return name[:at].rstrip()
        depth += (char in "<({[") - (char in ">)}]" and depth > 0)
    return name
