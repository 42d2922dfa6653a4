"""Checks whether a version can be published: `python scripts/release.py FOLDER`.

Prints the checklist, one line a point, with what is left to do; the exit status is 1 while something is.  The source
distribution is built into FOLDER, and from that alone the wheel, which is then tried in an environment of its own:
installed as anyone would, asked for its version, and made to train, record and explain the demo.  `--quick` leaves that
out.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_SECTION = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)
_WHEEL_KIND = "cp311-abi3"  # the stable ABI of the oldest Python: one wheel a platform
_PACKED = (
    "stepscope/agents/SKILL.md",
    "stepscope/py.typed",
    "stepscope/web/static/index.html",
    "stepscope/web/static/licenses.txt",
)
_NOT_PACKED = re.compile(r"(^|/)tests?/|node_modules|\.(pyx|pxd|c|h|tsx?|map)$")
_RELATIVE_LINK = re.compile(r"\]\((?!\w+:|#)([^)]+)\)")
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
    """Licence, authors and what else an index of packages shows."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = ("license", "license-files", "authors", "description", "keywords", "classifiers", "requires-python")
    missing = [name for name in wanted if not project.get(name)]
    missing += [file for file in project.get("license-files", ()) if not (root / file).is_file()]
    return f"pyproject.toml: {', '.join(missing)}" if missing else ""


def check_address(root: Path) -> str:
    """The one thing that only the owner knows: where the repository is. All links follow from it."""
    whole = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    if whole["tool"]["hatch"]["metadata"]["hooks"]["custom"]["address"].startswith("https://"):
        return ""
    return 'only the owner knows it: pyproject.toml, [tool.hatch.metadata.hooks.custom], address = "https://..."'


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
    """The source distribution alone makes the wheel, which holds the page, every loop and the licence texts."""
    for old in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
        old.unlink()
    with tempfile.TemporaryDirectory() as elsewhere:
        problem = _build(root, "sdist", folder)
        if problem:
            return problem
        with tarfile.open(next(folder.glob("*.tar.gz"))) as packed:
            packed.extractall(elsewhere, filter="data")
        problem = _build(next(Path(elsewhere).iterdir()), "wheel", folder)
    return problem or check_wheel(root, next(folder.glob("*.whl")))


def _build(root: Path, target: str, folder: Path) -> str:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder.absolute())]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return f"the {target} failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}" if done.returncode else ""


def check_wheel(root: Path, path: Path) -> str:
    """What has to be in the wheel is there, nothing else is, and its description can be shown."""
    if _WHEEL_KIND not in path.name:
        return f"{path.name} is no wheel of {_WHEEL_KIND}: build with CPython, not without its lock"
    facts, modules = f"stepscope-{version_of(root)}.dist-info", (root / "src").rglob("*.pyx")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        missing = {*_PACKED, f"{facts}/licenses/LICENSE", f"{facts}/METADATA"} - {*names}
        if missing:
            return f"not packed: {', '.join(sorted(missing))}"
        described = Parser().parsestr(wheel.read(f"{facts}/METADATA").decode())
        page_licenses = wheel.read("stepscope/web/static/licenses.txt").decode()
    loops = {module.relative_to(root / "src").with_suffix("").as_posix() for module in modules}
    problems = {
        "not packed": loops - {name.partition(".")[0] for name in names if name.endswith((".so", ".pyd"))},
        "packed, but of no use": {name for name in names if _NOT_PACKED.search(name)},
        "dead links in the description": {*_RELATIVE_LINK.findall(str(described.get_payload()))},
        "bundled without a licence": {name for name in _bundled(root) if f"\n{name} " not in page_licenses},
    }
    if described["Description-Content-Type"] != "text/markdown":
        problems["the description is not Markdown"] = {str(described["Description-Content-Type"])}
    return "; ".join(f"{problem}: {', '.join(sorted(found))}" for problem, found in problems.items() if found)


def _bundled(root: Path) -> list[str]:
    return [*json.loads((root / "frontend/package.json").read_text("utf-8"))["dependencies"]]


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
    yield "address of the repository", lambda: check_address(root)
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
    print(f"{left} left to do" if left else "ready: tag it, and upload what is in the folder", flush=True)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
