"""`stepscope`: the entry point, and the one place that prints errors and chooses the exit status.

0: done.  1: the work failed; one line on stderr says what, where and what to do.  2: wrong usage.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from stepscope import __version__
from stepscope.cli import process, screen
from stepscope.errors import InputError, OutputError, StepscopeError, UsageError

if TYPE_CHECKING:
    from stepscope.cli.commands import Command

DEBUG_VARIABLE = "STEPSCOPE_DEBUG"
COMPLETION = "_STEPSCOPE_COMPLETE"  # set by a shell that asks for completions
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # a disk or a stream that takes no more

# Numpy's OpenBLAS starts a thread for each core when it is loaded, and these keep the cores busy for 50 ms of processor
# time, although nothing here multiplies matrices.
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line in a process of its own, and exits."""
    # One command makes no cycles worth collecting, and looking for them among the objects of large libraries costs a
    # twentieth of its time.
    gc.disable()
    if os.environ.get("STEPSCOPE_LOGDIR"):  # which is meant for training jobs
        from stepscope.capture.auto.autostart import disarm

        disarm()
    words = sys.argv[1:] if arguments is None else list(arguments)
    screen.adapt(words)
    process.words = words
    status = run(words)
    _discard_output()
    if process.shows_tool:
        _end_process(status)
    sys.exit(status)


def _end_process(status: int) -> NoReturn:
    """Ends the process without taking the interpreter down, which frees a profile object by object: 30 ms for nothing.

    For commands that start no thread and no process, and leave nothing to be done at exit.
    """
    if "stepscope.engines.base" in sys.modules:
        from stepscope.engines.session_work import close_engines

        close_engines()
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(status)


def _discard_output() -> None:
    """Discards output that could not be written and that `run` has reported: Python would retry and exit with a status
    of its own."""
    try:
        _write_output()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def _write_output() -> None:
    print(end="", flush=True)  # works without a stdout too


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    try:
        return _status_of_command(arguments)
    except StepscopeError as error:
        return _fail(error, str(error), WRONG_USAGE if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError as error:
        return _fail(
            error, "[memory] there is not enough memory for this profile; look at one host with --host", FAILED
        )
    except BrokenPipeError:  # the reader closed the pipe
        return FAILED
    except OSError as error:
        known = _translate_system_error(error)
        return _fail_unforeseen(error) if known is None else _fail(error, str(known), FAILED)
    except Exception as error:
        return _fail_unforeseen(error)


def _status_of_command(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    status = _run_words(words)
    _write_output()  # now, while a failure can still be reported
    return status


def _run_words(words: list[str]) -> int:
    """Runs the command that the first word names, or what the options before it ask for.  Raises UsageError."""
    if words in (["--version"], ["-V"]):
        print(f"stepscope {__version__}")
        return DONE
    if COMPLETION in os.environ or words[:1] in (["--install-completion"], ["--show-completion"]):
        from stepscope.cli import completion

        return completion.run(words)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words or words[0] in ("--help", "-h"):
        from stepscope.cli import help as help_text

        help_text.show_all(sys.stdout if words else sys.stderr)
        return DONE if words else WRONG_USAGE
    from stepscope.cli.commands import find_command

    return _run_command(find_command(words[0]), words[1:])


def _run_command(command: Command, words: list[str]) -> int:
    from stepscope.cli.words import HelpWanted

    if not command.passes_on:  # to a program of the user, whose environment is its own
        os.environ.setdefault(_BLAS_THREADS, "1")
    if command.shows_tool and process.shelf is None:
        from stepscope.kernels import memory

        process.shows_tool = True
        memory.prefer_large_heap()
    try:
        command.run(words)
    except HelpWanted:
        from stepscope.cli import help as help_text

        help_text.show(command)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else DONE
    return DONE


def _translate_system_error(error: OSError) -> StepscopeError | None:
    """The error to report for a refusal by the system; None if it may be a defect of Stepscope."""
    if error.errno in _OUTPUT_ERRORS:
        return OutputError(
            f"cannot write the result: {error.strerror}", hint="free some space, or choose another place"
        )
    if isinstance(error, FileNotFoundError) and not _has_working_folder():
        return InputError("the folder that this shell is in has been removed", hint="change to another folder with cd")
    return None


def _has_working_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def are_loops_stale(kernels: Path) -> bool:
    """Whether a source of the compiled loops was changed after they were built; only a checkout has such sources."""
    stamp = kernels / ".native-stamp"
    if not stamp.is_file():
        return False
    built = stamp.stat().st_mtime
    return any(source.stat().st_mtime > built for source in kernels.rglob("*.p[yx][xd]"))


def _fail_unforeseen(error: Exception) -> int:
    what = f"{type(error).__name__}: {error}"
    if are_loops_stale(Path(__file__).parent.parent / "kernels"):
        hint = "the compiled loops of this checkout are older than their sources: run `make demo` or `make test` in it"
        return _fail(error, f"[internal] {what}; {hint}", FAILED)
    return _fail(error, f"[internal] {what}; this is a bug in Stepscope: {DEBUG_VARIABLE}=1 shows where", FAILED)


def _fail(error: BaseException, text: str, status: int) -> int:
    if os.environ.get(DEBUG_VARIABLE):
        raise error
    from stepscope.report.looks import clean

    print("stepscope: " + clean(" ".join(text.split())), file=sys.stderr)
    return status
