import io
import sys

sys.stderr = io.StringIO()
print("x", file=sys.stderr)
print(repr(sys.stderr.getvalue()))
