# modes: run prove
import sys

sys.stderr = None
raise ValueError("x")
