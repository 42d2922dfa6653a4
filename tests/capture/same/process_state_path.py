import os
import sys

print(sys.path, sys.path[0] == os.path.dirname(os.path.abspath(__file__)), sys.executable)
