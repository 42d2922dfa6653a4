# modes: run prove
# arguments: copied none stdout
"""stderr is a copy of stdout, nothing, or stdout itself."""

import os
import sys

how = sys.argv[1]
if how == "copied":
    os.dup2(1, 2)
    print("e", file=sys.stderr)
else:
    sys.stderr = sys.stdout if how == "stdout" else None
    print("a", file=sys.stderr)
    raise ValueError("x")
