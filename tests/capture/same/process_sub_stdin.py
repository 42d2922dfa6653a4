import subprocess
import sys

r = subprocess.run([sys.executable, "-"], input="print(7)", capture_output=True, text=True)
print(r.stdout, r.returncode)
