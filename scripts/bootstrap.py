"""Makes `.venv` ready for one purpose: `python3 scripts/bootstrap.py demo|lint|test|docs|bench`.

Uses the standard library only, and nothing newer than Python 3.6, so that whatever `python3` a machine has can run it,
look for one that is new enough, and say plainly what is missing.  When nothing changed since the last time it does
nothing: a stamp in `.venv` records what was installed, from which `pyproject.toml`, for which Python.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

import frontend
import native

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
CANDIDATES = ("python3", "python3.13", "python3.12", "python3.11", "python3.14", "python")
EXTRAS: Dict[str, Tuple[str, ...]] = {
    "demo": ("mcp",),
    "lint": ("dev",),
    "test": ("dev", "docs", "test"),
    "docs": ("docs",),
    "bench": ("bench",),
    "fuzz": ("dev", "fuzz"),
}

_PROBE = """
import json, sys
missing = []
for module in ("venv", "ensurepip"):
    try:
        __import__(module)
    except ImportError:
        missing.append(module)
print(json.dumps({"version": sys.version_info[:3], "missing": missing}))
"""

_WORTH_SHOWING = re.compile(
    r"\s*(Downloading|Processing|Building|Installing (build|collected)|Preparing|ERROR|error)\b"
)

_REASONS = (
    (
        r"\[page\] (?P<what>(?!fetching|building)[^\n]*)",
        "the page could not be built: {what}",
        "run `python3 scripts/frontend.py build` to see all of it, or do without the page: STEPSCOPE_SKIP_FRONTEND=1",
    ),
    (
        r"\[native\] (?P<what>(?!compiling)[^\n]*)",
        "the loops could not be compiled: {what}",
        "run `python3 scripts/native.py build` to see all of it",
    ),
    (
        r"No space left on device",
        "the disk is full",
        "free some space (the test set-up needs about 4 GB) and run the command again",
    ),
    (
        r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|Max retries exceeded"
        r"|Temporary failure in name resolution|Connection (refused|reset|aborted)|Network is unreachable",
        "pip cannot reach the package index",
        "check the network, the proxy (HTTPS_PROXY) or the index (PIP_INDEX_URL), and run the command again",
    ),
    (
        r"No matching distribution found for (?P<what>\S+)",
        "the package index has no {what} for this Python and system",
        "check the index (PIP_INDEX_URL), or use a Python that every package is built for (3.11 to 3.13), such as: "
        "make test PYTHON=python3.12",
    ),
    (
        r"Permission denied",
        "a file may not be written",
        "check who owns the checkout and its .venv",
    ),
)


class SetupError(Exception):
    """Something is missing; the text says what, and what to do about it."""


class Python(NamedTuple):
    """An interpreter that runs, its version, and the modules for set-up that it lacks."""

    path: str
    version: Tuple[int, int, int]
    missing: Tuple[str, ...]


def dotted(version: Tuple[int, ...]) -> str:
    """A version tuple as text."""
    return ".".join(str(part) for part in version)


def probe(path: str) -> Optional[Python]:
    """What the interpreter at `path` is, or None if it does not run."""
    try:
        answer = subprocess.run(
            [path, "-c", _PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=True
        )
        facts = json.loads(answer.stdout.decode())
        major, minor, micro = facts["version"]
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        return None
    return Python(path, (major, minor, micro), tuple(facts["missing"]))


def complaint(python: Python) -> Optional[str]:
    """Why an interpreter will not do, or None if it will."""
    if python.version < OLDEST:
        return f"{python.path} is Python {dotted(python.version)}"
    if python.missing:
        return f"{python.path} is Python {dotted(python.version)} without the module {' and '.join(python.missing)}"
    return None


def choose(wanted: Optional[str]) -> Python:
    """The interpreter to build `.venv` with: `wanted` if given, else the first suitable one on the PATH.

    Raises SetupError that lists what was found, and what to install.
    """
    found: List[Python] = []
    for name in [wanted] if wanted else CANDIDATES:
        path = shutil.which(name)
        python = probe(path) if path else None
        if python is None:
            continue
        if complaint(python) is None:
            return python
        found.append(python)
    raise SetupError(_nothing_suitable(wanted, found))


def _nothing_suitable(wanted: Optional[str], found: List[Python]) -> str:
    complaints = "; ".join(filter(None, map(complaint, found))) or "there is no Python on the PATH"
    lacking = [python.version for python in found if python.version >= OLDEST]
    if lacking:
        package = f"python{dotted(lacking[0][:2])}-venv"
        return f"Python's venv module is missing: {complaints}.\nInstall it (on Debian: apt-get install {package})."
    if wanted and not found:
        return f"PYTHON={wanted} is not a Python that runs here.\nGive the path of a Python {dotted(OLDEST)} or newer."
    advice = "Install one, or point to it: make demo PYTHON=/path/to/python3.12"
    return f"Python {dotted(OLDEST)} or newer is missing: {complaints}.\n{advice}"


class Environment:
    """The virtual environment of a checkout, and the stamp that tells what is in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / "stepscope-setup.json"

    def key(self, python: Python) -> str:
        """Changes whenever the environment has to be installed anew: another place, Python or `pyproject.toml`."""
        text = "\n".join([str(self.root), dotted(python.version), (self.root / "pyproject.toml").read_text()])
        return hashlib.sha256(text.encode()).hexdigest()

    def installed(self, key: str) -> Optional[List[str]]:
        """The extras that are installed under `key`, or None if the environment is not as `key` says."""
        try:
            stamp = json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            return None
        return stamp["extras"] if stamp.get("key") == key else None

    def record(self, key: str, extras: List[str]) -> None:
        """Writes the stamp, at once or not at all."""
        draft = self.stamp.with_suffix(".tmp")
        draft.write_text(json.dumps({"key": key, "extras": extras}) + "\n")
        draft.replace(self.stamp)

    def existing(self, wanted: Optional[str]) -> Optional[Python]:
        """The environment's own interpreter if it runs, is new enough and is not another than was asked for."""
        python = probe(str(self.python)) if self.python.exists() else None
        if python is None or python.version < OLDEST:
            return None
        if wanted and choose(wanted).version != python.version:
            return None
        return python

    def create(self, base: Python) -> Python:
        """Makes an empty environment with `base`, in place of a broken or outdated one.  Raises SetupError."""
        say(f"creating .venv with Python {dotted(base.version)} ({base.path})")
        made = subprocess.run(
            [base.path, "-m", "venv", "--clear", str(self.folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        python = probe(str(self.python))
        if made.returncode or python is None:
            raise SetupError(f"{base.path} could not make .venv:\n{made.stdout.decode(errors='replace')}")
        return python

    def install(self, extras: List[str]) -> None:
        """Installs Stepscope from the checkout, with extras.  Raises SetupError."""
        target = f"{self.root}[{','.join(extras)}]" if extras else str(self.root)
        command = [str(self.python), "-m", "pip", "install", "--disable-pip-version-check", "--editable", target]
        code, lines = stream(command)
        if code:
            raise SetupError(diagnose(lines))


def stream(command: List[str]) -> Tuple[int, List[str]]:
    """Runs pip and shows those of its lines that tell how far it is.  Returns status and all lines."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        for raw in process.stdout or ():
            line = raw.decode(errors="replace").rstrip()
            lines.append(line)
            if _WORTH_SHOWING.match(line):
                print("    " + line.strip()[:114], flush=True)
    return process.returncode, lines


def diagnose(lines: List[str]) -> str:
    """Why pip failed, in words that say what to do; with pip's own last words where the reason is not known."""
    text = "\n".join(lines)
    for pattern, reason, advice in _REASONS:
        match = re.search(pattern, text)
        if match:
            return f"{reason.format(**match.groupdict())}.\nTo do: {advice}."
    return "pip failed; its last words:\n" + "\n".join(lines[-15:])


def say(text: str) -> None:
    """Prints a line of progress."""
    print("[setup] " + text, flush=True)


def set_up(purpose: str, wanted: Optional[str], root: Path = ROOT) -> bool:
    """Makes the environment ready for `purpose`.  Returns False if it was already.  Raises SetupError."""
    environment = Environment(root)
    python = environment.existing(wanted) or environment.create(choose(wanted))
    key = environment.key(python)
    before = environment.installed(key)
    extras = sorted(set(before or ()) | set(EXTRAS[purpose]) | set(_node_extra(purpose)))
    if before == extras and not is_page_outdated(root) and not native.is_outdated(root):
        return False
    size = "; the first time this downloads about 1 GB" if "test" in extras else ""
    say(f"installing what `make {purpose}` needs into .venv{size}")
    started = time.monotonic()
    environment.install(extras)
    environment.record(key, extras)
    say(f"ready after {time.monotonic() - started:.0f} s")
    return True


def is_page_outdated(root: Path) -> bool:
    """True if the page has to be built, which every installation does."""
    return (root / "frontend").is_dir() and not (frontend.is_skipped() or frontend.is_built(root))


def _node_extra(purpose: str) -> Tuple[str, ...]:
    """Checking the page needs a Node.js that stays; for building it pip brings one that goes again."""
    needs_one = "dev" in EXTRAS[purpose] and not frontend.is_skipped() and frontend.node_of_machine() is None
    return ("node",) if needs_one else ()


def main() -> int:
    """Sets up, or prints one plain message and returns 1."""
    parser = argparse.ArgumentParser(description="Makes .venv ready.")
    parser.add_argument("purpose", choices=sorted(EXTRAS))
    parser.add_argument("--python", default=os.environ.get("PYTHON"), help="the Python to use; default: any suitable")
    options = parser.parse_args()
    try:
        set_up(options.purpose, options.python or None)
    except (SetupError, OSError) as error:
        print(f"\n[setup] cannot set up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
