"""Extends the watch to the Python processes that a program starts.

- A fork inherits everything.  It captures steps but never a time window, so workers that only load data write nothing.
- `multiprocessing` with fresh processes, and any `subprocess` that runs this Python with a script or a module: the
  command is changed so that Stepscope comes first.  That is how launchers such as `torchrun` start their ranks.
- A process that is started in another way, or by another Python, inherits STEPSCOPE_LOGDIR, and is captured if it
  imports stepscope.

Nothing is added to the Python installation or to PYTHONPATH, so no other process is affected.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.capture.auto.ledger import Ledger
from stepscope.capture.auto.settings import CHILD, LOGDIR, Settings
from stepscope.capture.patches import Call, Undo, wrap_attribute
from stepscope.capture.report import report

_TAKE_A_VALUE = "WX"  # flags whose value is the rest of the word, or the next word
_WITHOUT_US = "IESs"  # with these flags Python may not find us: it ignores PYTHONPATH or site-packages
_SPAWN = "from multiprocessing"
_US = "stepscope.capture.auto"
_UNDO: list[Undo] = []


def inherit(settings: Settings, ledger: Ledger) -> None:
    """Captures processes that start from now on as well; they list in the ledger what they captured."""
    before = {name: os.environ.get(name) for name in [*settings.to_environment(), CHILD]}
    os.environ.update(settings.keep_running().to_environment())
    os.environ[CHILD] = ledger.to_text()
    from multiprocessing import spawn

    _UNDO.extend(
        (
            functools.partial(_set_environment, before),
            wrap_attribute(subprocess.Popen, "__init__", _start_with_stepscope),
            wrap_attribute(spawn, "get_command_line", _command_with_stepscope),
        )
    )


def _start_with_stepscope(popen: Call, self: Any, args: Any, *others: Any, **named: Any) -> None:
    popen(self, _add_to_args(args, named), *others, **named)


def _command_with_stepscope(command: Call, **facts: Any) -> list[str]:
    return [f"import stepscope; {word}" if str(word).startswith(_SPAWN) else word for word in command(**facts)]


def _set_environment(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def disinherit() -> None:
    """Starts processes as before."""
    while _UNDO:
        _UNDO.pop()()


def _add_to_args(args: Any, named: Mapping[str, Any]) -> Any:
    """The arguments of `Popen` with Stepscope in the command, if it runs this Python in an environment like ours."""
    if named.get("executable") is not None or isinstance(args, (str, bytes, os.PathLike)) or not args:
        return args
    try:
        words = [os.fspath(word) for word in args]
        if not all(isinstance(word, str) for word in words) or words[0] != sys.executable:
            return args
        return add_stepscope(words) if _wants_capture(named.get("env")) else args
    except Exception as error:
        report(error, "adding Stepscope to a process")
        return args


def _wants_capture(environment: Mapping[Any, Any] | None) -> bool:
    """False if the program gives the process a different environment: nothing would be captured there, and Stepscope
    itself might not be found."""
    if environment is None:
        return True
    return LOGDIR in environment and environment.get("PYTHONPATH") == os.environ.get("PYTHONPATH")


def add_stepscope(words: Sequence[str]) -> list[str]:
    """The command line of a Python that runs a script or a module, with Stepscope inserted before it.

    >>> add_stepscope(["python", "-u", "train.py", "--steps", "3"])
    ['python', '-u', '-m', 'stepscope.capture.auto', 'train.py', '--steps', '3']
    >>> add_stepscope(["python", "-um", "train"])
    ['python', '-u', '-m', 'stepscope.capture.auto', '-m', 'train']
    >>> add_stepscope(["python", "-c", "pass"])
    ['python', '-c', 'pass']
    """
    place = 1
    while place < len(words) and len(words[place]) > 1 and words[place].startswith("-"):
        flags, program, rest = _parse_flags(words[place])
        if program == "m":
            module = [rest] * bool(rest) + list(words[place + 1 :])
            is_ours = bool(module) and module[0].split(".")[0] == "stepscope"
            before = [*words[:place], *([f"-{flags}"] if flags else [])]
            return (
                list(words) if is_ours or not module or _hides_stepscope(flags) else [*before, "-m", _US, "-m", *module]
            )
        if program == "c" or _hides_stepscope(flags):
            return list(words)
        needs_value = words[place] == "--check-hash-based-pycs" or (program and not rest)
        place += 2 if needs_value else 1
    if place >= len(words) or words[place] == "-":
        return list(words)
    return [*words[:place], "-m", _US, *words[place:]]


def _parse_flags(word: str) -> tuple[str, str, str]:
    """Splits a word of flags as Python does: the flags without a value, the one with a value, and that value.

    >>> _parse_flags("-um"), _parse_flags("-Wignore"), _parse_flags("-bb")
    (('u', 'm', ''), ('', 'W', 'ignore'), ('bb', '', ''))
    """
    if word.startswith("--"):
        return "", "", ""
    at = next((at for at, letter in enumerate(word) if letter in "cm" + _TAKE_A_VALUE), len(word))
    return word[1:at], word[at : at + 1], word[at + 1 :]


def _hides_stepscope(flags: str) -> bool:
    return any(flag in _WITHOUT_US for flag in flags)
