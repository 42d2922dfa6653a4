import io
import sys

sys.stdout = io.StringIO()
print("x")
sys.stderr.write(repr(sys.stdout.getvalue()))
