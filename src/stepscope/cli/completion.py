"""Completion of words by a shell: `--show-completion` and `--install-completion` give it the script that asks here.

The shell runs `stepscope` with `_STEPSCOPE_COMPLETE` set to its name and the words so far as arguments.  The last one
is being typed; the shell gets a line for each word that it may become.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from stepscope.cli.commands import HELP, VERSION, all_names, find_command
from stepscope.errors import UsageError

VARIABLE = "_STEPSCOPE_COMPLETE"
_SCRIPTS = {
    "bash": """_stepscope() {
    local IFS=$'\\n'
    COMPREPLY=($(_STEPSCOPE_COMPLETE=bash stepscope "${COMP_WORDS[@]:1:COMP_CWORD}"))
}
complete -o default -F _stepscope stepscope
""",
    "zsh": """#compdef stepscope
_stepscope() {
    local -a found
    found=("${(@f)$(_STEPSCOPE_COMPLETE=zsh stepscope "${(@)words[2,CURRENT]}")}")
    if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _stepscope stepscope
""",
    "fish": """complete -c stepscope -a '(
    set -lx _STEPSCOPE_COMPLETE fish; stepscope (commandline -opc)[2..] (commandline -ct))'
""",
}
_FILES = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/stepscope.fish",
}


def run(words: Sequence[str]) -> int:
    """Completes words, or shows or installs the script.  Returns the exit status.  Raises UsageError."""
    if VARIABLE in os.environ:
        print("\n".join(complete(words)))
        return 0
    shell = _this_shell(words[1:])
    if words[0] == "--show-completion":
        print(_SCRIPTS[shell], end="")
    else:
        print(f"{shell} completion installed in {_install(shell)}; it takes effect in a new terminal")
    return 0


def complete(words: Sequence[str]) -> list[str]:
    """The words that the last of some words may become."""
    *before, typed = words or ("",)
    return [word for word in _candidates(before, typed) if word.startswith(typed)]


def _candidates(before: Sequence[str], typed: str) -> list[str]:
    if not before:
        return [*VERSION.names, *HELP.names] if typed.startswith("-") else all_names()
    try:
        parameters = find_command(before[0]).parameters
    except UsageError:
        return []
    named = {name: each for each in parameters for name in (*each.option.names, each.option.off) if name}
    if before[-1] in named and not named[before[-1]].is_flag:
        return list(named[before[-1]].choices)
    return [*named, *HELP.names] if typed.startswith("-") else []


def _this_shell(named: Sequence[str]) -> str:
    """The shell that is named, else that of the user.  Raises UsageError for one without a script."""
    shell = named[0] if named else Path(os.environ.get("SHELL", "")).name
    if shell not in _SCRIPTS:
        raise UsageError(f"there is no completion for the shell {shell!r}", hint=f"name one of {', '.join(_SCRIPTS)}")
    return shell


def _install(shell: str) -> Path:
    """Writes the script to where the shell reads it, once; returns the file."""
    path, script = Path(_FILES[shell]).expanduser(), _SCRIPTS[shell]
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = path.read_text("utf-8") if path.exists() else ""
    if not re.search(r"^complete .*stepscope|^compdef _stepscope", kept, re.MULTILINE):
        path.write_text(f"{kept}\n{script}" if kept else script, "utf-8")
    return path
