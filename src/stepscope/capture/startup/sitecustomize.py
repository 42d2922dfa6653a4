"""Run by Python itself, as `sitecustomize`, before the first line of a program that is followed.

So the program is run by Python and not by us: its `__main__`, command line, flags, path, tracebacks, streams and exit
status are what they are without a profiler.  The process that starts it puts our folder at the front of PYTHONPATH and
says in one variable what is to be done; both are taken back here, so the program and what it starts never see them.

    STEPSCOPE_FOLLOW = [when] "module:function" + newline + what that function is given, as text

A program that `stepscope run` starts is followed at once.  A process that such a program starts may be anything: with
`?` it waits until a framework or `stepscope` is imported, and until then costs a finder that finds nothing.  What
`multiprocessing` spawns is a worker of the program and does not wait; with `*` only such a process is followed.

This file imports nothing that Python has not loaded by now: a folder of the program may hold a `logging.py` or a
`random.py`, and the program imports that one.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

VARIABLE, PATHS = "STEPSCOPE_FOLLOW", "PYTHONPATH"
WAITS, WORKERS_ONLY = "?", "*"
FRAMEWORKS = frozenset({"jax", "keras", "tensorflow", "torch"})
"""What a process that only loads data does not import, and one that trains does."""

_NAME = "stepscope.capture.startup.sitecustomize"
_HAD_PATHS = "="  # before the text: the variable was set, if only to nothing
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is not loaded yet
_PACKAGES = os.path.abspath(os.path.join(_HERE, *[os.pardir] * 3))  # noqa: PTH100, PTH118
_WITHOUT_US = "IES"  # with these flags Python reads no PYTHONPATH or no sitecustomize
_TAKE_A_VALUE = "WX"  # flags whose value is the rest of the word, or the next word
_MOST_OF_FIRST_LINE = 256
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
_SHOW_NOTHING = frozenset({"cat", "cd", "echo", "grep", "head", "mkdir", "sleep", "tail", "tee", "true", "wait"})
"""Commands that start no other, and whose output does not depend on the variables that we add."""
_WORKER = "--multiprocessing-fork"  # among the words of what `multiprocessing` spawns


# ---- in the process that starts one ----------------------------------------------------------------------------------


def environment_with(environment: Mapping[str, str], text: str) -> dict[str, str]:
    """The variables of a Python process that does what a text asks for before its program."""
    before = environment.get(PATHS)
    paths = f"{_HERE}{os.pathsep}{before}" if before else _HERE
    return {**environment, PATHS: paths, VARIABLE: text if before is None else _HAD_PATHS + text}


class Started:
    """The Python processes that this one starts.

    Attributes:
        text: what each does before its program; empty for nothing.
        is_followed: whether this process itself was started so.
    """

    text = ""
    is_followed = False
    _undo: Callable[[], object] | None = None

    def follow(self, text: str) -> None:
        """Follows the processes that are started from now on."""
        self.text = text
        if text and self._undo is None:
            self._install()

    def forget(self) -> None:
        """Starts processes as before."""
        self.text = ""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _install(self) -> None:
        """Puts ourselves before the one function in C that `subprocess` and `multiprocessing` start processes by."""
        try:
            import _posixsubprocess
        except ImportError:  # another system
            return
        original = _posixsubprocess.fork_exec

        def fork_exec(*args: Any) -> Any:
            return original(*_follow_started(args))

        held: list[tuple[ModuleType, str]] = [(_posixsubprocess, "fork_exec")]
        user = sys.modules.get("subprocess")
        held += [(user, "_fork_exec")] if getattr(user, "_fork_exec", None) is original and user else []
        for module, name in held:
            setattr(module, name, fork_exec)

        def undo() -> None:
            user = sys.modules.get("subprocess")
            for module, name in ((_posixsubprocess, "fork_exec"), (user, "_fork_exec")):
                if getattr(module, name, None) is fork_exec:
                    setattr(module, name, original)

        self._undo = undo


STARTED = Started()


def _follow_started(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of `fork_exec`, with our variables in the environment if it starts this Python."""
    try:
        words, programs, environment = args[0], args[1], args[5]
        if not STARTED.text or not _runs_this_python(words, programs):
            return args
        pairs = (
            list(os.environb.items()) if environment is None else [_split(os.fsencode(each)) for each in environment]
        )
        variables = {os.fsdecode(name): os.fsdecode(value) for name, value in pairs}
        if environment is not None and not _is_like_ours(variables):
            return args
        more = environment_with(variables, STARTED.text)
        return (*args[:5], [os.fsencode(f"{name}={value}") for name, value in more.items()], *args[6:])
    except Exception:  # the program starts its process, whatever becomes of us
        return args


def _split(pair: bytes) -> tuple[bytes, bytes]:
    name, _, value = pair.partition(b"=")
    return name, value


def _is_like_ours(variables: Mapping[str, str]) -> bool:
    """Whether a process that is given these finds the same programs and modules as this one."""
    return all(variables.get(name) == os.environ.get(name) for name in ("PATH", PATHS))


def _runs_this_python(words: Sequence[Any], programs: Iterable[Any]) -> bool:
    """Whether a command is this Python, or a script whose first line names it, with flags that let us in."""
    found = next((path for path in map(os.fsdecode, programs) if os.access(path, os.X_OK)), "")
    flags = [os.fsdecode(word) for word in words][1:]
    if os.path.basename(found) in _SHELLS and len(flags) == 2 and flags[0] == "-c":  # noqa: PTH119
        return shell_runs_this_python(flags[1])
    if not _is_this_python(found):
        python, *flags = _read_first_line(found)
        if not _is_this_python(python):
            return False
    return lets_us_in(flags)


def _is_this_python(path: str) -> bool:
    folder, name = os.path.split(path)
    return folder == os.path.dirname(sys.executable) and name.startswith("python")  # noqa: PTH120


def _read_first_line(path: str) -> list[str]:
    """The words after `#!` of a script; one empty word if it has none."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return [""]
    try:
        line = os.read(file, _MOST_OF_FIRST_LINE).partition(b"\n")[0]
    finally:
        os.close(file)
    return os.fsdecode(line[2:]).split() or [""] if line[:2] == b"#!" else [""]


def shell_runs_this_python(text: str) -> bool:
    """Whether a text for a shell runs this Python, and nothing that could see what we add to the environment.

    >>> import sys
    >>> python = sys.executable
    >>> shell_runs_this_python(f"cd /tmp && OMP_NUM_THREADS=1 {python} -u train.py --name 'a b' 2>&1 | tee log")
    True
    >>> others = (f"env; {python} a.py", f"echo $A; {python} a.py", f"{python} -I a.py")
    >>> [shell_runs_this_python(each) for each in others]
    [False, False, False]
    """
    commands = _split_shell(text)
    runs = False
    for words in commands or []:
        while words and ("=" in words[0] or words[0] == "exec"):
            name = words.pop(0).partition("=")[0]
            if name in ("PATH", PATHS, VARIABLE):
                return False
        if not words or words[0] in _SHOW_NOTHING:
            continue
        path = words[0]
        if os.sep not in path:
            folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
            places = (os.path.join(folder, path) for folder in folders)  # noqa: PTH118
            path = next((place for place in places if os.access(place, os.X_OK)), "")
        if not _is_this_python(path) or not lets_us_in(words[1:]):
            return False
        runs = True
    return runs


def _split_shell(text: str) -> list[list[str]] | None:
    """The commands of a text for a shell, as words without redirections; None for what is more than words: variables,
    patterns, substitutions, loops."""
    commands: list[list[str]] = [[]]
    word: str | None = None
    quote, is_target = "", False
    for letter in text + "\n":
        if quote:
            if letter == quote:
                quote = ""
            elif quote == '"' and letter in "$`\\":
                return None
            else:
                word = (word or "") + letter
        elif letter in "'\"":
            quote, word = letter, word or ""
        elif letter in "$`\\(){}[]*?~#!":
            return None
        elif letter in " \t\n;|<>" or (letter == "&" and not (is_target and word is None)):
            is_number = letter in "<>" and word is not None and word.isdigit()  # as in `2>&1`
            if word is not None and not is_target and not is_number:
                commands[-1].append(word)
            is_target = letter in "<>" or (is_target and word is None and letter in " \t")
            word = None
            if letter in "\n;|&":
                commands.append([])
        else:
            word = (word or "") + letter
    return None if quote else commands


def lets_us_in(words: Sequence[str]) -> bool:
    """Whether Python, with these words after its name, runs a program of the user and lets us come before it.

    >>> lets_us_in(["-u", "train.py"]), lets_us_in(["-um", "train"]), lets_us_in(["-I", "train.py"])
    (True, True, False)
    >>> lets_us_in(["-m", "stepscope", "open"]), lets_us_in(["-V"])
    (False, True)
    """
    place = 0
    while place < len(words) and len(words[place]) > 1 and words[place].startswith("-"):
        flags, program, rest = split_flags(words[place])
        if any(flag in _WITHOUT_US for flag in flags):
            return False
        if program == "m":
            module = rest or "".join(words[place + 1 : place + 2])
            return module.partition(".")[0] != "stepscope"
        if program == "c":
            return True
        needs_value = words[place] == "--check-hash-based-pycs" or (program and not rest)
        place += 2 if needs_value else 1
    return True


def split_flags(word: str) -> tuple[str, str, str]:
    """Splits a word of flags as Python does: the flags without a value, the one with a value, and that value.

    >>> split_flags("-um"), split_flags("-Wignore"), split_flags("-bb")
    (('u', 'm', ''), ('', 'W', 'ignore'), ('bb', '', ''))
    """
    if word.startswith("--"):
        return "", "", ""
    at = next((at for at, letter in enumerate(word) if letter in "cm" + _TAKE_A_VALUE), len(word))
    return word[1:at], word[at : at + 1], word[at + 1 :]


# ---- in the process that is started ----------------------------------------------------------------------------------


class Waiting:
    """A finder that finds nothing: it calls a function when a framework is about to be imported.

    `import stepscope` asks for it, too: that is no import of a module that this finder could see.
    """

    def __init__(self, begin: Callable[[], object]) -> None:
        self._begin = begin

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """None; what is found for a framework is found by the finders that are there when we have begun."""
        if name not in FRAMEWORKS:
            return None
        self.begin_with_stepscope()
        found = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if hasattr(finder, "find_spec"))
        return next(filter(None, found), None)

    def begin_with_stepscope(self) -> None:
        """Begins, and waits no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._begin()


def _begin(place: str, payload: str) -> None:
    """Calls a function of this package; what goes wrong there is said, and the program runs."""
    try:
        module, _, name = place.partition(":")
        sys.path.insert(0, _PACKAGES)
        try:
            function = getattr(__import__(module, fromlist=[name]), name)
        finally:
            sys.path.remove(_PACKAGES)
        function(payload)
    except Exception as error:
        if sys.stderr is not None:
            sys.stderr.write(f"stepscope: nothing is captured in this process: {type(error).__name__}: {error}\n")


def _begin_unnoticed(place: str, payload: str) -> None:
    """As `_begin`, before the program: what that imports is Python's own, and hides no module of the program."""
    known, whole = set(sys.modules), sys.path[:]
    own = [os.path.abspath(each) for each in os.environ.get(PATHS, "").split(os.pathsep) if each]  # noqa: PTH100
    sys.path[:] = [each for each in whole if each not in own]
    try:
        _begin(place, payload)
    finally:
        sys.path[:] = whole
    names = {name.partition(".")[0] for folder in (*_program_folder(), *own) for name in _list(folder)}
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in names - {"stepscope"}:
            del sys.modules[name]


def _program_folder() -> list[str]:
    """The folder that Python puts at the front of the path once it runs the program."""
    if sys.flags.safe_path:
        return []
    script = sys.argv[0] if sys.argv else ""
    if script in ("", "-", "-c", "-m"):
        return [os.curdir]
    script = os.path.realpath(script)
    return [script if os.path.isdir(script) else os.path.dirname(script)]  # noqa: PTH112, PTH120


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _restore() -> str:
    """Gives the environment and the path back; returns what is asked for."""
    text = os.environ.pop(VARIABLE, "")
    first, _, rest = os.environ.get(PATHS, "").partition(os.pathsep)
    if first == _HERE and text.startswith(_HAD_PATHS):
        os.environ[PATHS] = rest
    elif first == _HERE:
        del os.environ[PATHS]
    sys.path[:] = [each for each in sys.path if each != _HERE]
    sys.path_importer_cache.pop(_HERE, None)
    return text.removeprefix(_HAD_PATHS)


def _make_way() -> None:
    """Imports the `sitecustomize` that Python would have found, if there is one.

    Raises:
        ImportError: there is none, which Python expects.
    """
    own = sys.modules.pop("sitecustomize")
    sys.modules[_NAME] = own
    __import__("sitecustomize")


def _start() -> None:
    text = _restore()
    try:
        _make_way()
    finally:
        if text:
            _follow(text)


def _follow(text: str) -> None:
    place, _, payload = text.partition("\n")
    when = place[0]
    STARTED.is_followed = when != WORKERS_ONLY
    if when in (WAITS, WORKERS_ONLY):
        STARTED.follow(text)
    if when not in (WAITS, WORKERS_ONLY):
        _begin_unnoticed(place, payload)
    elif _WORKER in sys.argv:
        _begin_unnoticed(place[1:], payload)
    elif when == WAITS:
        sys.meta_path.insert(0, Waiting(lambda: _begin(place[1:], payload)))


if __name__ == "sitecustomize" and VARIABLE in os.environ:
    _start()
