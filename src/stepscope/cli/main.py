"""`stepscope`: the entry point, and the one place that prints errors and chooses the exit status.

0: done.  1: the work failed; one line on stderr says what, where and what to do.  2: wrong usage.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from stepscope.errors import StepscopeError, UsageError

DEBUG_VARIABLE = "STEPSCOPE_DEBUG"
DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line in a process of its own, and exits."""
    # One command makes no cycles worth collecting, and looking for them among the objects of large libraries costs a
    # twentieth of its time.
    gc.disable()
    if os.environ.get("STEPSCOPE_LOGDIR"):  # which is meant for training jobs
        from stepscope.capture.auto.autostart import disarm

        disarm()
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    from stepscope.cli.commands import app

    try:
        app(args=arguments, prog_name="stepscope")
    except SystemExit as end:  # how the library ends: after the command, after --help, and on wrong usage
        return end.code if isinstance(end.code, int) else DONE
    except StepscopeError as error:
        return _fail(error, str(error), WRONG_USAGE if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError as error:
        return _fail(
            error, "[memory] there is not enough memory for this profile; look at one host with --host", FAILED
        )
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return _fail(error, f"[internal] {what}; a defect of Stepscope: {DEBUG_VARIABLE}=1 shows where", FAILED)
    return DONE


def _fail(error: BaseException, text: str, status: int) -> int:
    if os.environ.get(DEBUG_VARIABLE):
        raise error
    print("stepscope: " + " ".join(text.split()), file=sys.stderr)
    return status
