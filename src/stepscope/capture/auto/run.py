"""Starts the program of a user as its user would, with what is to be done before its first line.

The program takes the place of this process, so its number, streams and signals are those of the command.  Python runs
it itself: nothing of ours is below it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from stepscope.capture.startup.sitecustomize import environment_with, lets_us_in, split_flags
from stepscope.records import dataclass

WRONG_USAGE = 2
STDIN = "-"  # as a target


@dataclass(frozen=True)
class ProgramToRun:
    """A program to run.

    Attributes:
        target: a script, a folder or a zip file with a `__main__.py`, or a module's name.
        arguments: what follows it on the command line.
        as_module: `target` names a module, as after `python -m`.
        as_code: `target` is the text of a program, as after `python -c`.  `-` is one that comes on stdin.
    """

    target: str
    arguments: tuple[str, ...] = ()
    as_module: bool = False
    as_code: bool = False

    @property
    def name(self) -> str:
        """What its user calls it: the script's file name, or the module."""
        return "python" if self.as_code else Path(self.target).name

    @property
    def words(self) -> list[str]:
        """What follows the name of Python on the command line, after its flags."""
        kind = ["-c"] if self.as_code else ["-m"] if self.as_module else []
        return [*kind, self.target, *self.arguments]

    def exists(self) -> bool:
        """False if it is a file that is not there; of a module Python knows it."""
        return self.as_code or self.as_module or self.target == STDIN or Path(self.target).exists()

    def start(self, text: str) -> NoReturn:
        """Runs it in place of this process.

        Args:
            text: what is done before its first line, see `stepscope.capture.startup.sitecustomize`; empty for
                nothing.
        """
        command = [sys.executable, *own_flags(), *self.words]
        environment = environment_with(os.environ, text) if text else dict(os.environ)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        if os.name == "nt":  # there the caller would not wait for what takes the place of a process
            sys.exit(subprocess.run(command, env=environment, check=False).returncode)
        os.execve(sys.executable, command, environment)


def can_follow() -> bool:
    """Whether Python, with the flags of this process, lets us come before its program."""
    return lets_us_in([*own_flags(), "program.py"])


def own_flags() -> list[str]:
    """The flags that this Python was started with, for the Python of the program.

    >>> import sys
    >>> sys.orig_argv[1:1] = ["-Xdev"]
    >>> own_flags()
    ['-Xdev']
    >>> del sys.orig_argv[1]
    """
    words, place = sys.orig_argv, 1
    flags: list[str] = []
    while place < len(words) and len(words[place]) > 1 and words[place].startswith("-"):
        before, program, rest = split_flags(words[place])
        if program in ("m", "c"):
            return [*flags, f"-{before}"] if before else flags
        needs_value = words[place] == "--check-hash-based-pycs" or (program and not rest)
        until = place + (2 if needs_value else 1)
        flags += words[place:until]
        place = until
    return flags
