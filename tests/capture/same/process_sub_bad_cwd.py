import subprocess
import sys

subprocess.run([sys.executable, "-c", "1"], cwd="/nope")
