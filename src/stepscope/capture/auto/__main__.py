"""`python -m stepscope.capture.auto`: run by `python -m stepscope.autostart`, and before the scripts of processes that
a watched program starts."""

from __future__ import annotations

import os
import sys

from stepscope.capture.auto.autostart import arm_from_environment, print_for_user
from stepscope.capture.auto.run import WRONG_USAGE, Program, end_process
from stepscope.capture.auto.settings import LOGDIR


def main(words: list[str]) -> None:
    """Runs a script or, after -m, a module, and ends this process as Python would have."""
    as_module = words[:1] == ["-m"]
    target, *arguments = words[as_module:] or [""]
    if not target:
        print("usage: python -m stepscope.autostart [-m] SCRIPT [ARGS...]", file=sys.stderr)
        sys.exit(WRONG_USAGE)
    if not os.environ.get(LOGDIR):
        print_for_user(f"nothing is captured, because {LOGDIR} is not set")
    arm_from_environment()
    end_process(Program(target, arguments, as_module).run())


if __name__ == "__main__":
    main(sys.argv[1:])
