"""`python -m stepscope.autostart [-m] SCRIPT ARGS...`: runs a script or a module as Python would, and captures it.

Environment variables such as STEPSCOPE_LOGDIR say what it captures.  It is for launchers, which start one such process
per rank.
"""

import sys

from stepscope.capture.auto.__main__ import main

__all__ = ["main"]

if __name__ == "__main__":
    main(sys.argv[1:])
