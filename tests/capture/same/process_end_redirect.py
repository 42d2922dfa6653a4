import contextlib
import io
import sys

with contextlib.redirect_stderr(io.StringIO()) as f:
    print("x", file=sys.stderr)
print(repr(f.getvalue()))
