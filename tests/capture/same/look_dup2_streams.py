"""Streams replaced below Python."""

import os
import sys

sys.stdout.flush()
kept = os.dup(1)
target = os.open("out.txt", os.O_CREAT | os.O_WRONLY)
os.dup2(target, 1)
os.dup2(target, 2)
print("to the file")
print("error to the file", file=sys.stderr)
sys.stdout.flush()
os.dup2(kept, 1)
print(kept, target, open("out.txt").read().splitlines())
