# modes: run prove
import sys

sys.stderr = sys.stdout
print("a", file=sys.stderr)
raise ValueError("v")
