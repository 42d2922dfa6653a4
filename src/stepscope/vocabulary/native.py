"""Frames of compiled code, as samplers of processors record them: a symbol, and the file that it is in.

draw(float*, int) @ trainer            of a program
<operator new @ libstdc++.so.6.0.29>   of a library
<libnvrtc.so.13>                       the same, of which no symbol is known
"""

from __future__ import annotations

from functools import lru_cache

from stepscope.vocabulary.patterns import Pattern

IS_FRAME = r"<?[^<>@$][^@]* @ [^ @]+$"
OF_PROGRAM = r"[^<>@$][^@]* @ [^ @]+$"

# Where systems keep what no program brings along, and the files of interpreters and of packages.
_OF_SYSTEM = Pattern(
    r"(?i)\[|/(?:usr|lib(?:32|64)?|opt|bin|sbin|snap|nix)/|[a-z]:\\(?:windows|program files)"
    r"|.*[/\\](?:site|dist)-packages[/\\]|.*[/\\](?:ana|mini)?(?:conda|forge)\d?[/\\]|(?:.*[/\\])?(?:python[\d.]*|lib(?:cu|nv|c10|torch|python)[^/\\]*)$"
)
_OF_LANGUAGE = Pattern(r"(?:std|__gnu_cxx|core|alloc|boost|__?[a-z]|cuda[A-Z]|cu[A-Z]|libcudart_static)\w*")
_PROGRAM = Pattern(OF_PROGRAM)
_NO_SYMBOL = Pattern(r"0x[0-9a-f]+$|\[")
_INTERPRETER = Pattern(r"<(?:.* @ )?(?:lib)?python[\d.]*(?:\.so[\d.]*)?>$")
_NO_FRAME = Pattern(r"\[(?:Max depth|Broken backtraces)\]$")


@lru_cache(maxsize=65_536)
def frame_of(symbol: str, file: str) -> str:
    """The name of a frame; empty for what only says that a stack was cut.

    >>> frame_of("draw(float*, int)", "/home/me/trainer"), frame_of("0x7f3f", "/usr/lib/libnvrtc.so.13")
    ('draw @ trainer', '<libnvrtc.so.13>')
    >>> frame_of("float std::uniform<float>::operator()<int>(int&)", "/home/me/trainer")
    '<std::uniform::operator() @ trainer>'
    """
    if _NO_FRAME.match(symbol):
        return ""
    base = file.replace("\\", "/").rpartition("/")[2].replace(" ", "_").replace("@", "_") or "unknown"
    if not symbol or _NO_SYMBOL.match(symbol):
        return f"<{base}>"
    name = bare(symbol)
    is_own = _OF_SYSTEM.match(file) is None and _OF_LANGUAGE.match(name) is None
    return f"{name} @ {base}" if is_own else f"<{name} @ {base}>"


def bare(symbol: str) -> str:
    """A symbol without its parameters, those of its templates, and what it returns.

    >>> bare("void fill<float>(float*, int) const"), bare("<rand::Rng as core::Next>::next"), bare("_IO_getc")
    ('fill', '<rand::Rng as core::Next>::next', '_IO_getc')
    """
    if symbol.startswith("<"):  # Rust
        return symbol.replace("@", "_")
    kept, depth = list[str](), 0
    for place, char in enumerate(symbol):
        if char in "<>" and not symbol[:place].endswith(("operator", "operator<", "operator>", "-")):
            depth += 1 if char == "<" else -1
        elif depth == 0:
            kept.append(char)
    text = "".join(kept).replace("@", "_").replace("(anonymous namespace)::", "")
    call = text.find("(", text.find("operator()") + len("operator()") if "operator()" in text else 1)
    text = (text[:call] if call > 0 else text).strip()
    return text if "operator " in text else text.rpartition(" ")[2] or symbol


def is_of_program(frame: str) -> bool:
    """True for a frame of a program's own file.

    >>> is_of_program("draw @ trainer"), is_of_program("<malloc @ libc.so.6>"), is_of_program("train.py(12): step")
    (True, False, False)
    """
    return _PROGRAM.match(frame) is not None


def is_interpreter(frame: str) -> bool:
    """True for a frame of Python's interpreter.

    >>> is_interpreter("<_PyEval_EvalFrameDefault @ python3.11>"), is_interpreter("draw @ trainer")
    (True, False)
    """
    return _INTERPRETER.match(frame) is not None
