import subprocess
import sys

q = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
q.kill()
print(q.wait())
