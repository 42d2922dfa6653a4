import os
import sys

if not os.fork():
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
