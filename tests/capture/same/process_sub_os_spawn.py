import os
import sys

print(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", "import sys; sys.exit(4)"]))
