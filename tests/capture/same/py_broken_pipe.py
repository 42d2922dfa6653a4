# modes: run api watch prove
import os
import signal
import subprocess
import sys

reader, writer = os.pipe()
os.close(reader)
try:
    os.write(writer, b"x")
except BrokenPipeError as error:
    print(error.errno)
program = "import sys\nfor i in range(100000): print(i)\nprint('end', file=sys.stderr)"
head = subprocess.run(
    ["sh", "-c", f'"{sys.executable}" -c "{program}" | head -2'], capture_output=True, text=True, check=False
)
lines = [line for line in head.stderr.splitlines() if not line.startswith("stepscope")]
print(head.stdout.split(), head.returncode, lines[-2:])
child = subprocess.Popen(["true"], stdin=subprocess.PIPE)
child.wait()
try:
    child.communicate(b"x" * 100000)
    print("swallowed")
except BrokenPipeError:
    print("broken")
os.close(0)
try:
    input()
except (OSError, EOFError, RuntimeError) as error:
    print(type(error).__name__)
print(os.open(os.devnull, os.O_RDONLY), signal.getsignal(signal.SIGPIPE))
sys.stdin.close()
null = os.open(os.devnull, os.O_WRONLY)
reader, writer = os.pipe()
sys.stdout.flush()
os.dup2(writer, 1)
os.close(writer)
os.close(reader)
print("to nobody")
