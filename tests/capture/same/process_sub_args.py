import subprocess
import sys

q = subprocess.Popen([sys.executable, "-c", "pass"])
print(q.args == [sys.executable, "-c", "pass"], q.wait())
print(repr(q).replace(sys.executable, "PY"))
