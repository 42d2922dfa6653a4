import sys

print(
    [
        (s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through)
        for s in (sys.stdin, sys.stdout, sys.stderr)
    ],
    sys.stdout is sys.__stdout__,
)
