# arguments: redirect reconfigure tee devfull closed_late binary isatty faulty
"""Streams that the program changes while it trains."""

import contextlib
import io
import os
import sys

way = sys.argv[1]


def step(n):
    return sum(range(n))


def train():
    for n in range(8):
        print("step", n, step(n))


if way == "redirect":
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        train()
        print("wrong", file=sys.stderr)
    print(out.getvalue(), err.getvalue(), sep="|")
elif way == "reconfigure":
    sys.stdout.reconfigure(encoding="ascii", errors="backslashreplace", newline="\r\n", line_buffering=True)
    train()
    print("\xe9\u20ac", sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering)
elif way == "tee":

    class Tee(io.TextIOBase):
        def __init__(self, *streams):
            self.streams = streams
            self.count = 0

        def write(self, text):
            self.count += 1
            for each in self.streams:
                each.write(text)
            return len(text)

    kept = io.StringIO()
    sys.stdout = Tee(sys.__stdout__, kept)
    sys.stderr = Tee(sys.__stderr__, kept)
    train()
    print("end", file=sys.stderr)
    print(len(kept.getvalue()), sys.stdout.count, sys.stderr.count)
elif way == "devfull":
    sys.stdout = open("/dev/full", "w")
    train()
elif way == "closed_late":
    import atexit

    atexit.register(sys.stdout.close)
    train()
elif way == "binary":
    for n in range(8):
        sys.stdout.buffer.write(bytes([n, 255, 0]) + str(step(n)).encode())
    os.write(1, b"raw")
    sys.stdout.buffer.raw.write(b"unbuffered\n")
elif way == "isatty":
    train()
    print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size.__name__, sys.stdin.read())
    print(sys.stdin.fileno(), sys.stdout.fileno(), sys.stderr.fileno(), sys.__stdout__ is sys.stdout, os.dup(1) < 20)
elif way == "faulty":

    class Faulty(io.StringIO):
        def flush(self):
            raise OSError("no flush")

    sys.stderr = Faulty()
    train()
    raise ValueError("to a faulty stream")
