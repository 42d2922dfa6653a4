"""`python -m stepscope.capture.auto`: what `python -m stepscope.autostart` runs."""

from __future__ import annotations

import os
import sys

from stepscope.capture.auto.autostart import print_for_user
from stepscope.capture.auto.run import WRONG_USAGE, ProgramToRun
from stepscope.capture.auto.settings import LOGDIR

_FOLLOW = "stepscope.capture.auto.autostart:arm_program\nfrom the environment"


def main(words: list[str]) -> None:
    """Runs a script or, after -m, a module, in place of this process."""
    as_module = words[:1] == ["-m"]
    target, *arguments = words[as_module:] or [""]
    if not target:
        print("usage: python -m stepscope.autostart [-m] SCRIPT [ARGS...]", file=sys.stderr)
        sys.exit(WRONG_USAGE)
    if not os.environ.get(LOGDIR):
        print_for_user(f"nothing is captured, because {LOGDIR} is not set")
    ProgramToRun(target, tuple(arguments), as_module).start(_FOLLOW if os.environ.get(LOGDIR) else "")


if __name__ == "__main__":
    main(sys.argv[1:])
