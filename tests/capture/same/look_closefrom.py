"""Closes all files from 3 on, as daemons do, in the middle of the program."""

import os
import sys
import contextlib

os.closerange(3, 5000)
for number in range(3, 5000):
    with contextlib.suppress(OSError):
        os.close(number)
file = open("kept.txt", "w+")
file.write("mine")
file.flush()
print(file.fileno(), open("kept.txt").read())
sys.stdout.flush()
os.closerange(3, 100000)
print("end")
