import subprocess
import sys
import time

q = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
time.sleep(0.5)
q.terminate()
print(q.wait())
