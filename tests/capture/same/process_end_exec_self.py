import os
import sys

if len(sys.argv) < 2:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
print(sys.argv[1:], sorted(k for k in os.environ if "STEPSCOPE" in k and k != "STEPSCOPE_CACHE"))
