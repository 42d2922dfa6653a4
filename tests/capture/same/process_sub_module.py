import subprocess
import sys

r = subprocess.run([sys.executable, "-m", "json.tool"], input='{"a":1}', capture_output=True, text=True)
print(r.stdout, r.stderr)
