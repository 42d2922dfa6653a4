"""The program crashes, with faulthandler on."""

import ctypes
import faulthandler
import sys

with open("fault.txt", "w") as file:
    faulthandler.enable(file)
    print("before")
    sys.stdout.flush()
    ctypes.string_at(0)
