"""Runs a script or a module as Python itself would: `__main__`, `sys.argv`, `sys.path`, tracebacks, exit status."""

from __future__ import annotations

import importlib.util
import io
import os
import signal
import sys
import types
from collections.abc import Callable, Sequence
from importlib.machinery import BuiltinImporter, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn

from stepscope.errors import UsageError

WRONG_USAGE = 2
STDIN = "-"  # as a target


class Program:
    """A script or module to run.

    Args:
        target: a script, a folder or a zip file with a `__main__.py`, or a module's name.
        arguments: what follows it on the command line.
        as_module: `target` names a module, as after `python -m`.
        as_code: `target` is the text of a program, as after `python -c`.  `-` is one that comes on stdin.
    """

    def __init__(
        self, target: str, arguments: Sequence[str] = (), as_module: bool = False, as_code: bool = False
    ) -> None:
        self._target = target
        self._arguments = list(arguments)
        self._as_module = as_module
        self._as_code = as_code

    @property
    def name(self) -> str:
        """What its user calls it: the script's file name, or the module."""
        return "python" if self._as_code else Path(self._target).name

    def run(self, finish: Callable[[], object] = lambda: None) -> int:
        """Runs it to its end; returns the exit status that Python would return.

        An uncaught exception is printed by `sys.excepthook`, without Stepscope's frames.  After Ctrl-C the process
        ends by the signal, as Python does.

        Args:
            finish: called when the program's code has finished, before Python waits for its threads and ends.
        """
        try:
            code, main = self._prepare()
        except UsageError as error:
            print(f"{sys.executable}: {error.problem.reason}", file=sys.stderr)
            return WRONG_USAGE if not self._as_module else 1
        except BaseException as error:
            return _report_exception(error, None)
        sys.modules["__main__"] = main
        try:
            exec(code, main.__dict__)
        except BaseException as error:
            return _report_exception(error, _cut_own_frames(error, code))
        finally:
            finish()
        return 0

    def _prepare(self) -> tuple[CodeType, ModuleType]:
        """The code and the empty `__main__` module; sets the interpreter's state as Python would."""
        if self._as_code or self._target == STDIN:
            return self._text()
        sys.argv = [self._target, *self._arguments]
        if self._as_module:
            _put_first(str(Path.cwd()))
            return self._module(_find_module_spec(self._target))
        path = Path(self._target)
        if path.is_dir() or path.suffix in (".zip", ".pyz"):
            _put_first(self._target)
            return self._module(_find_module_spec("__main__"), name_is_target=False)
        _put_first(str(Path(os.path.realpath(path)).parent))
        return self._script(path)

    def _text(self) -> tuple[CodeType, ModuleType]:
        """A program without a file."""
        sys.argv = ["-c" if self._as_code else STDIN, *self._arguments]
        _put_first("")
        text, name = (self._target, "<string>") if self._as_code else (sys.stdin.read(), "<stdin>")
        main = _main_module(None, BuiltinImporter, None)
        return compile(text, name, "exec", dont_inherit=True), main

    def _script(self, path: Path) -> tuple[CodeType, ModuleType]:
        file = str(path.absolute())
        try:
            with io.open_code(file) as source:
                text = source.read()
        except OSError as error:
            reason = f"can't open file {file!r}: [Errno {error.errno}] {error.strerror}"
            raise UsageError(reason, path=path) from error
        loader = SourceFileLoader("__main__", file)
        return loader.source_to_code(text, file), _main_module(file, loader, None)

    def _module(self, spec: ModuleSpec, name_is_target: bool = True) -> tuple[CodeType, ModuleType]:
        loader = spec.loader
        assert loader is not None, "checked by _find_module_spec"
        code: CodeType | None = loader.get_code(spec.name)  # type: ignore[attr-defined]
        if code is None:
            raise UsageError(f"No code object available for {spec.name}")
        file = spec.origin or code.co_filename
        if name_is_target:
            sys.argv[0] = file
        main = _main_module(file, loader, spec)
        return code, main


def _main_module(file: str | None, loader: object, spec: ModuleSpec | None) -> ModuleType:
    main = types.ModuleType("__main__")
    if file is not None:
        main.__dict__.update(__file__=file, __cached__=spec.cached if spec else None)
    main.__dict__.update(
        __loader__=loader,
        __spec__=spec,
        __package__=spec.parent if spec else None,
        __builtins__=sys.modules["builtins"],
        __annotations__={},
    )
    return main


def _find_module_spec(name: str) -> ModuleSpec:
    """The spec of a module that can be run; of a package, that of its `__main__`."""
    sys.modules.pop("__main__", None)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError) as error:
        raise UsageError(f"Error while finding module specification for {name!r} ({error})") from error
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_code"):
        raise UsageError(f"No module named {name}")
    if spec.submodule_search_locations is not None:
        return _find_module_spec(f"{name}.__main__")
    return spec


def _put_first(folder: str) -> None:
    """Makes a folder the first entry of `sys.path`, unless Python runs with a safe path."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _cut_own_frames(error: BaseException, code: CodeType) -> TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return trace


def _report_exception(error: BaseException, trace: TracebackType | None) -> int:
    """Reports an exception as Python's main program does; returns the exit status."""
    if isinstance(error, SystemExit):
        return _exit_status(error.code)
    error.__traceback__ = trace
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.excepthook(type(error), error, trace)
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT
    return 1


def _exit_status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def end_process(status: int) -> NoReturn:
    """Ends this process with a status.  After Ctrl-C it ends by the signal, so that a shell notices."""
    if status == 128 + signal.SIGINT and hasattr(os, "kill"):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(status)
