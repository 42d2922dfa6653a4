"""Checks whether a version can be published: `python scripts/release.py FOLDER`.

Prints the checklist, one line a point, with what is left to do; the exit status is 1 while something is.  The wheel and
the source distribution are built into FOLDER, and the wheel is tried there in an environment of its own: installed as
anyone would, asked for its version, and made to train, record and explain the demo.  `--quick` leaves that out.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_SECTION = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)
_WHEEL_KIND = "cp311-abi3"  # the stable ABI of the oldest Python: one wheel a platform
_WITHOUT_RECORD = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "STEPSCOPE_"))}

Check = Callable[[], str]
"""What is left to do for a point of the checklist; empty if it is done."""


def version_of(root: Path) -> str:
    """The version that would be published."""
    return str(_VERSION.findall((root / "src/stepscope/__init__.py").read_text("utf-8"))[0])


def check_changelog(root: Path) -> str:
    """The newest section is that of the version, with its date, and nothing is left above it."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    parts = _SECTION.split(text)[1:]  # name, date and text, again and again
    sections = [(parts[at], parts[at + 1], parts[at + 2].strip()) for at in range(0, len(parts), 3)]
    waiting = sum(len(body) > 0 for name, _, body in sections if name == "Unreleased")
    if waiting:
        return f"CHANGELOG.md: move what is under [Unreleased] to [{version_of(root)}]"
    newest = next((each for each in sections if each[0] != "Unreleased"), ("nothing", None, ""))
    if newest[0] != version_of(root) or newest[1] is None:
        return f"CHANGELOG.md: the newest section is of {newest[0]}; write `## [{version_of(root)}] - YYYY-MM-DD`"
    return ""


def check_recipe(root: Path) -> str:
    """The recipe for conda has the version."""
    found = re.search(r'^  version: "([^"]+)"$', (root / "recipe/recipe.yaml").read_text("utf-8"), re.MULTILINE)
    return "" if found and found[1] == version_of(root) else f"recipe/recipe.yaml: write the version {version_of(root)}"


def check_metadata(root: Path) -> str:
    """Licence, authors and the address of the repository, from which the links follow."""
    whole = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    project, missing = whole["project"], []
    missing += [
        name for name in ("license", "license-files", "authors", "description", "keywords") if not project.get(name)
    ]
    missing += [file for file in project.get("license-files", ()) if not (root / file).is_file()]
    if not whole["tool"]["hatch"]["metadata"]["hooks"]["custom"]["address"]:
        missing.append("the address of the public repository (tool.hatch.metadata.hooks.custom)")
    return f"pyproject.toml: {', '.join(missing)}" if missing else ""


def check_tree(root: Path) -> str:
    """Everything is committed, and the version has no tag yet."""
    changed = _output(root, "git", "status", "--porcelain")
    if changed:
        return f"commit {len(changed.splitlines())} changed files"
    tag = f"v{version_of(root)}"
    return f"the tag {tag} exists: raise the version" if _output(root, "git", "tag", "--list", tag) else ""


def check_generated(root: Path) -> str:
    """Types, schemas and generated pages follow the code."""
    done = subprocess.run(
        [sys.executable, "scripts/gen_types.py", "--check"], cwd=root, capture_output=True, check=False
    )
    return "" if done.returncode == 0 else "make format, and commit what it wrote"


def _output(root: Path, *command: str) -> str:
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def check_build(root: Path, folder: Path) -> str:
    """Wheel and source distribution can be built and hold the page, every loop and the licence texts."""
    for old in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
        old.unlink()
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.absolute())]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"the build failed: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}"
    wheel, source = next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))
    if _WHEEL_KIND not in wheel.name:
        return f"{wheel.name} is no wheel of {_WHEEL_KIND}: build with CPython, not without its lock"
    names = zipfile.ZipFile(wheel).namelist()
    wanted = [
        f"stepscope-{version_of(root)}.dist-info/licenses/LICENSE",
        "stepscope/agents/SKILL.md",
        "stepscope/py.typed",
    ]
    wanted += ["stepscope/web/static/index.html", "stepscope/web/static/licenses.txt"]
    wanted += [
        path.relative_to(root / "src").with_suffix(".abi3.so").as_posix() for path in (root / "src").rglob("*.pyx")
    ]
    missing = [name for name in wanted if name not in names and name.replace(".abi3.so", ".pyd") not in names]
    with tarfile.open(source) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    missing += [name for name in ("LICENSE", "CHANGELOG.md", "hatch_build.py", "scripts/native.py") if name not in held]
    return f"not packed: {', '.join(missing)}" if missing else ""


def check_installed(root: Path, folder: Path) -> str:
    """The wheel works where nothing else is: it needs nothing that it does not ask for."""
    wheel = next((str(each) for each in folder.glob("*.whl")), "")
    if not wheel:
        return "there is no wheel"
    home = folder / "clean"
    venv.create(home, clear=True, with_pip=True)
    python = str(home / "bin" / "python")
    if os.name == "nt":
        python = str(home / "Scripts" / "python.exe")
    asked = [
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel],
        ["-m", "pip", "check"],
        ["-m", "stepscope", "demo", "--framework", "numpy", "--logdir", str(folder / "logs")],
        ["-m", "stepscope", "trace", str(folder / "logs"), "--output", str(folder / "demo.pftrace")],
        ["-m", "stepscope", "report", str(folder / "logs"), "--output", str(folder / "demo.html")],
    ]
    for words in asked:
        done = subprocess.run(
            [python, *words], cwd=folder, env=_WITHOUT_RECORD, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return f"{' '.join(words[1:3])}: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}"
    said = subprocess.run(
        [python, "-m", "stepscope", "--version"], cwd=folder, capture_output=True, text=True, check=True
    )
    return "" if said.stdout.strip() == f"stepscope {version_of(root)}" else f"it is {said.stdout.strip()}"


def checklist(root: Path, folder: Path | None) -> Iterator[tuple[str, Check]]:
    """The points in their order."""
    yield "changelog", lambda: check_changelog(root)
    yield "recipe for conda", lambda: check_recipe(root)
    yield "metadata and licence", lambda: check_metadata(root)
    yield "types, schemas, pages", lambda: check_generated(root)
    yield "tree and tag", lambda: check_tree(root)
    if folder is not None:
        yield "wheel and source distribution", lambda: check_build(root, folder)
        yield "a clean environment", lambda: check_installed(root, folder)


def main() -> int:
    """Prints the checklist; 1 while something is left to do."""
    parser = argparse.ArgumentParser(description="what is left to do before a version is published")
    parser.add_argument("folder", type=Path, help="where the wheel is built and tried")
    parser.add_argument("--quick", action="store_true", help="without building and trying the wheel")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    print(f"stepscope {version_of(ROOT)}")
    left = 0
    for name, check in checklist(ROOT, None if chosen.quick else chosen.folder.absolute()):
        to_do = check()
        left += bool(to_do)
        print(f"  {'to do' if to_do else 'done ':6}{name}{': ' + to_do if to_do else ''}", flush=True)
    print(f"{left} left" if left else "ready: tag it, and upload what is in the folder", flush=True)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
