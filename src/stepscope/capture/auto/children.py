"""Takes the watch along into the Python processes that a program starts.

- A fork inherits everything.  It captures once it runs steps, and never a time window, so workers that load data write
  nothing.
- `multiprocessing` with fresh processes, and any `subprocess` that runs this Python with a script or a module: the
  command is changed so that Stepscope comes first.  That is how launchers such as `torchrun` start their ranks.
- What is started in another way, or by another Python, finds STEPSCOPE_LOGDIR in its environment, and captures if it
  imports stepscope.

Nothing is added to the Python installation or to PYTHONPATH, so no process is touched that the program did not start.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from stepscope.capture.auto.ledger import Ledger
from stepscope.capture.auto.settings import CHILD, Settings
from stepscope.capture.report import report

_FLAGS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_SPAWN = "from multiprocessing"
_US = "stepscope.capture.auto"
_ORIGINAL: dict[str, Any] = {}


def inherit(settings: Settings, ledger: Ledger) -> None:
    """Makes processes that start from now on captured as well; they write down there what they captured."""
    before = {name: os.environ.get(name) for name in [*settings.to_environment(), CHILD]}
    os.environ.update(settings.continuing().to_environment())
    os.environ[CHILD] = ledger.as_text()
    popen = subprocess.Popen.__init__

    @functools.wraps(popen)
    def starts(self: Any, args: Any, *others: Any, **named: Any) -> None:
        popen(self, _with_us(args, named.get("executable")), *others, **named)

    _ORIGINAL.update(environment=before, popen=popen, spawn=None)
    subprocess.Popen.__init__ = starts  # type: ignore[method-assign]
    _take_spawn()


def _take_spawn() -> None:
    from multiprocessing import spawn

    command = spawn.get_command_line

    @functools.wraps(command)
    def commands(**facts: Any) -> list[str]:
        words: list[str] = command(**facts)
        return [f"import stepscope; {word}" if _is_program(word) else word for word in words]

    _ORIGINAL["spawn"] = command
    spawn.get_command_line = commands


def _is_program(word: object) -> bool:
    return isinstance(word, str) and word.startswith(_SPAWN)


def disinherit() -> None:
    """Starts processes as before."""
    if not _ORIGINAL:
        return
    from multiprocessing import spawn

    for name, value in _ORIGINAL["environment"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    subprocess.Popen.__init__ = _ORIGINAL["popen"]  # type: ignore[method-assign]
    spawn.get_command_line = _ORIGINAL["spawn"]
    _ORIGINAL.clear()


def _with_us(args: Any, executable: object) -> Any:
    """A command with Stepscope in it, if it runs this Python."""
    if executable is not None or isinstance(args, (str, bytes, os.PathLike)) or not args:
        return args
    try:
        words = [os.fspath(word) for word in args]
        if not all(isinstance(word, str) for word in words) or words[0] != sys.executable:
            return args
        return with_us(words)
    except Exception as error:
        report(error, "taking Stepscope along into a process")
        return args


def with_us(words: Sequence[str]) -> list[str]:
    """The command line of a Python that runs a script or a module, with Stepscope before these.

    >>> with_us(["python", "-u", "train.py", "--steps", "3"])
    ['python', '-u', '-m', 'stepscope.capture.auto', 'train.py', '--steps', '3']
    >>> with_us(["python", "-m", "train"])
    ['python', '-m', 'stepscope.capture.auto', '-m', 'train']
    >>> with_us(["python", "-c", "pass"])
    ['python', '-c', 'pass']
    """
    place = 1
    while place < len(words) and words[place].startswith("-") and words[place] not in ("-m", "-c", "-"):
        place += 2 if words[place] in _FLAGS_WITH_VALUE else 1
    rest = list(words[place:])
    has_us = rest[:1] == ["-m"] and rest[1:2] and rest[1].split(".")[0] == "stepscope"
    if not rest or rest[0] in ("-c", "-") or has_us:
        return list(words)
    return [*words[:place], "-m", _US, *rest]
