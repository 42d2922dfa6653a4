"""Reads stdin, and asks whether the streams are terminals."""

import sys

print(repr(sys.stdin.read()), [each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr)])
print([(each.encoding, each.errors, each.line_buffering, each.mode) for each in (sys.stdin, sys.stdout, sys.stderr)])
try:
    input("? ")
except EOFError as error:
    print(error)
