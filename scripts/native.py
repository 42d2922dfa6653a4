"""Compiles the loops in `src/stepscope/kernels/`: `python scripts/native.py build|test`.

Every `.pyx` file becomes one extension module beside it.  The package's build hook calls this, and so may you.  Needs
Cython, the headers of the Python that runs this, and a C compiler: the machine's or, where that has none, the PyPI
package `ziglang`.  When the sources did not change since the last build it does nothing; a stamp beside the modules
says what they were made of.  Like `bootstrap.py`, which asks for that stamp, this file keeps to what old Pythons know.

`test` makes a copy of the package in `build/` that checks every index and every sum and, unless it is told `--checked`,
runs under the address and undefined-behaviour sanitizers, where the compiler has them; then it runs tests on the copy.
What follows on the command line goes to pytest.
"""

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

ROOT = Path(__file__).resolve().parent.parent
CYTHON_PACKAGE = "Cython>=3.1,<4"
ZIG_PACKAGE = "ziglang>=0.13"
OLDEST_ABI = (3, 11)

# Code for memoryviews is the same in every module; Cython puts it into one that the others share.
_SHARED = "stepscope.kernels._views"
_INCLUDED = {".pxd", ".h"}

_ALWAYS = {"language_level": "3", "cdivision": "True", "freethreading_compatible": "True"}
_DIRECTIVES: Dict[str, Dict[str, str]] = {
    "fast": {"boundscheck": "False", "wraparound": "False", "initializedcheck": "False"},
    "checked": {"boundscheck": "True", "wraparound": "False", "initializedcheck": "True"},
}
_DIRECTIVES["sanitize"] = _DIRECTIVES["fuzz"] = _DIRECTIVES["checked"]

# What clang refuses, every compiler refuses: a mixed-up pointer is then found on the machine of whoever mixed it up.
_STRICT = ["-Werror=incompatible-pointer-types", "-Werror=int-conversion", "-Werror=implicit-function-declaration"]
_COMMON_FLAGS = ["-fPIC", "-fno-strict-aliasing", "-fvisibility=hidden", *_STRICT]
_FLAGS: Dict[str, List[str]] = {
    "fast": ["-O3", "-g0", "-DNDEBUG", "-fwrapv"],
    "checked": ["-O1", "-g", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"],
    "sanitize": [
        "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
    ],
    "fuzz": ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,fuzzer-no-link,undefined",
             "-fsanitize-undefined-trap-on-error"],
}  # fmt: skip


# The tests that read files of all sorts of damage, and those of the loops themselves.
_TESTS = [
    "tests/kernels", "tests/truth/test_garbage.py", "tests/formats/test_xspace_damage.py",
    "tests/formats/test_xspace_reader.py", "tests/formats/test_kineto.py", "tests/formats/test_kineto_parts.py",
    "tests/formats/test_perfetto.py", "tests/formats/test_riegeli.py",
]  # fmt: skip


class NativeError(Exception):
    """The loops could not be compiled; the text says why, and what to do about it."""


class Module(NamedTuple):
    """An extension module: its dotted name, its source (None for the code that all share), where it goes."""

    name: str
    source: Optional[Path]
    target: Path


# -- what is there ------------------------------------------------------------------------------------------------


def kernels(root: Path) -> Path:
    """The folder with the sources, and of the built modules."""
    return root / "src" / "stepscope" / "kernels"


def has_stable_abi() -> bool:
    """True if one module serves this Python and all later ones; builds without the interpreter's lock have none."""
    return sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def suffix() -> str:
    """How the file name of an extension module ends."""
    if not has_stable_abi():
        return str(sysconfig.get_config_var("EXT_SUFFIX"))
    return ".pyd" if os.name == "nt" else ".abi3.so"


def modules(root: Path = ROOT) -> List[Module]:
    """All extension modules of the package."""
    folder = kernels(root)
    found = []
    for source in sorted(folder.rglob("*.pyx")):
        parts = source.relative_to(root / "src").with_suffix("").parts
        found.append(Module(".".join(parts), source, source.with_name(source.stem + suffix())))
    shared = folder / (_SHARED.rpartition(".")[2] + suffix())
    return [*found, Module(_SHARED, None, shared)] if found else []


def stamp_of(module: Module, root: Path = ROOT) -> str:
    """Changes with everything that a module is made of: its source, what any source may include, and this file."""
    shared = [path for path in sorted(kernels(root).rglob("*")) if path.suffix in _INCLUDED]
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in [*shared, *([module.source] if module.source else [])]:
        digest.update(path.relative_to(root).as_posix().encode() + b"\n")
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def is_outdated(root: Path = ROOT) -> bool:
    """True if sources changed since they were last compiled, for whichever Python."""
    built = {name: stamp for name, stamp, _ in _stamps(root)}
    return any(built.get(module.name) != stamp_of(module, root) for module in modules(root))


def is_built(root: Path = ROOT, mode: str = "fast") -> bool:
    """True if the modules are there for this Python, and made of the present sources."""
    return not _outdated(root, mode)


def _outdated(root: Path, mode: str) -> List[Module]:
    """The modules that have to be compiled."""
    built = set(_stamps(root))
    return [
        module
        for module in modules(root)
        if (module.name, stamp_of(module, root), _kind(mode)) not in built or not module.target.is_file()
    ]


def _kind(mode: str) -> str:
    """What else tells one build from another: which Pythons on which machines can load it, and how it was compiled."""
    return f"{mode}:{sysconfig.get_platform()}:{suffix()}"


def _stamp_file(root: Path) -> Path:
    return kernels(root) / ".native-stamp"


def _stamps(root: Path) -> List[Tuple[str, str, str]]:
    """Name, stamp and kind of each module that was built."""
    if not _stamp_file(root).is_file():
        return []
    lines = [line.split(" ") for line in _stamp_file(root).read_text().splitlines()]
    return [(line[0], line[1], line[2]) for line in lines if len(line) == 3]


# -- the compiler -------------------------------------------------------------------------------------------------


def compiler_of_machine() -> Optional[List[str]]:
    """The C compiler of the machine: `$CC`, the one that Python was built with, or a well-known one."""
    if os.name == "nt":
        return _visual_studio()
    chosen = os.environ.get("CC", "").split()
    if chosen:
        return chosen
    built_with = str(sysconfig.get_config_var("CC") or "").split()[:1]
    return next(([name] for name in [*built_with, "cc", "gcc", "clang"] if _runs([name])), None)


def _visual_studio() -> Optional[List[str]]:
    """`["cl"]` where setuptools finds Visual Studio's build tools."""
    try:
        _distutils_compiler()
    except Exception:  # setuptools names its errors differently from version to version
        return None
    return ["cl"]


def compiler_of_python() -> Optional[List[str]]:
    """The compiler in the package `ziglang`, if that is installed."""
    command = [sys.executable, "-m", "ziglang", "cc"]
    return command if _runs(command) else None


def _runs(command: List[str]) -> bool:
    if not shutil.which(command[0]):
        return False
    try:
        answer = subprocess.run(
            [*command, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return answer.returncode == 0


def needed_packages(root: Path = ROOT) -> List[str]:
    """What pip has to bring before the loops can be compiled: nothing, or a compiler."""
    return [] if is_built(root) or compiler_of_machine() is not None else [ZIG_PACKAGE]


def require_compiler() -> List[str]:
    """The command of a C compiler.  Raises NativeError if there is none, no Cython, or no headers of Python."""
    if importlib.util.find_spec("Cython") is None:
        raise NativeError(f"Cython is missing.  To do: {sys.executable} -m pip install '{CYTHON_PACKAGE}'.")
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").is_file():
        version = "{}.{}".format(*sys.version_info[:2])
        raise NativeError(
            f"Python's headers are missing: there is no {include / 'Python.h'}.  To do: install them (on Debian: "
            f"apt-get install python{version}-dev)."
        )
    command = compiler_of_machine() or compiler_of_python()
    if command is None:
        raise NativeError(
            "there is no C compiler.  To do: install one (on Debian: apt-get install gcc libc6-dev; on macOS: "
            f"xcode-select --install; on Windows: Visual Studio Build Tools), or pip install '{ZIG_PACKAGE}'."
        )
    return command


# -- work ---------------------------------------------------------------------------------------------------------


def build(root: Path = ROOT, mode: str = "fast") -> bool:
    """Compiles the modules whose sources changed.  Returns False if there was nothing to do.  Raises NativeError."""
    if not modules(root):
        raise NativeError(f"there are no sources in {kernels(root)}.")
    wanted = _outdated(root, mode)
    if not wanted:
        return False
    compiler = require_compiler()
    say("compiling {} modules with {}".format(len(wanted), "zig" if "ziglang" in compiler else compiler[0]))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(cores()) as pool:
        drafts = list(pool.map(lambda module: _make(module, root, mode, compiler, Path(folder)), wanted))
        for module, draft in zip(wanted, drafts):
            _put(draft, module.target)
    lines = [" ".join((module.name, stamp_of(module, root), _kind(mode))) for module in modules(root)]
    _stamp_file(root).write_text("\n".join(lines) + "\n")
    return True


def build_copy(folder: Path, mode: str, root: Path = ROOT, without: Tuple[str, ...] = ()) -> None:
    """Copies the package to `folder/src/` and compiles it there, for tests.  Raises NativeError.

    `without` has the names of files and folders that a test does not need.
    """
    package = folder / "src" / "stepscope"
    for old in [path for path in package.rglob("*") if path.suffix in {".py", ".pyx", ".pyi", *_INCLUDED}]:
        old.unlink()  # modules stay, so that only changed sources are compiled again
    built = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", ".native-stamp", *without)
    shutil.copytree(str(root / "src" / "stepscope"), str(package), ignore=built, dirs_exist_ok=True)
    build(folder, mode)


def has_sanitizers(compiler: List[str]) -> bool:
    """True if the compiler can build with `-fsanitize=address,undefined`, and its libraries can be loaded first."""
    if not sys.platform.startswith("linux") or "ziglang" in compiler:
        return False
    return len(_sanitizer_libraries(compiler)) == 2


def _sanitizer_libraries(compiler: List[str]) -> List[str]:
    found = []
    for name in ("libasan.so", "libubsan.so"):
        answer = subprocess.run([*compiler, f"-print-file-name={name}"], stdout=subprocess.PIPE).stdout.decode().strip()
        found += [answer] if Path(answer).is_absolute() else []
    return found


def checked_environment(folder: Path, mode: str) -> Dict[str, str]:
    """The environment in which Python takes the package from a copy."""
    environment = dict(os.environ, PYTHONPATH=str(folder / "src"))
    if mode == "sanitize":
        environment["LD_PRELOAD"] = ":".join(_sanitizer_libraries(require_compiler()))
        environment["PYTHONMALLOC"] = "malloc"  # so that the sanitizer sees every object
        environment["ASAN_OPTIONS"] = "detect_leaks=0"  # Python frees little at its end
        environment["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    return environment


def run_tests(mode: str, arguments: List[str], root: Path = ROOT) -> int:
    """Runs tests on a copy of the package that checks what it does; returns pytest's status.  Raises NativeError."""
    if mode == "sanitize" and not has_sanitizers(require_compiler()):
        say("this compiler has no sanitizers: bounds and sums are checked, no more")
        mode = "checked"
    folder = root / "build" / f"native-{mode}"
    build_copy(folder, mode, root)
    command = [sys.executable, "-m", "pytest", *(arguments or _TESTS)]
    return subprocess.run(command, cwd=str(root), env=checked_environment(folder, mode)).returncode


def _make(module: Module, root: Path, mode: str, compiler: List[str], folder: Path) -> Path:
    """Translates one module to C and compiles that.  Returns the built file, which lies in `folder`."""
    code = folder / (module.name + ".c")
    cython = [sys.executable, "-m", "cython"]
    if module.source is None:
        code = folder / (_SHARED.rpartition(".")[2] + ".c")  # its name is that of the module's init function
        _run([*cython, f"--generate-shared={code}"], root)
    else:
        directives = ["-X{}={}".format(*item) for item in {**_ALWAYS, **_DIRECTIVES[mode]}.items()]
        names = ["--module-name", module.name, f"--shared={_SHARED}"]
        _run([*cython, *directives, *names, str(module.source), "-o", str(code)], root / "src")
    draft = folder / (module.name + suffix())
    if compiler == ["cl"]:
        _compile_with_visual_studio(code, draft, module.name)
    else:
        _run(_compile_command(compiler, mode, code, draft), folder)
    return draft


def _compile_command(compiler: List[str], mode: str, code: Path, draft: Path) -> List[str]:
    include = {sysconfig.get_path(name) for name in ("include", "platinclude")}
    flags = [*_COMMON_FLAGS, *_FLAGS[mode], *_abi_flags(), *("-I" + path for path in sorted(include))]
    if "ziglang" in compiler:
        flags.append("-fno-sanitize=undefined")  # which zig turns on by itself
    link = ["-shared"]
    if sys.platform == "darwin":
        link = ["-bundle", "-undefined", "dynamic_lookup"]
    elif os.name == "nt":
        library = "python3" if has_stable_abi() else "python{}{}".format(*sys.version_info[:2])
        link = ["-shared", "-L" + str(Path(sys.base_prefix) / "libs"), "-l" + library]
    if mode == "fast" and sys.platform != "darwin":
        link.append("-Wl,-s")  # without names for a debugger: a third of the size
    asked = {name: os.environ.get(name, "").split() for name in ("CFLAGS", "LDFLAGS", "ARCHFLAGS")}
    before = [*flags, *asked["CFLAGS"], *asked["ARCHFLAGS"]]
    return [*compiler, *before, str(code), "-o", str(draft), *link, *asked["LDFLAGS"]]


def _abi_flags() -> List[str]:
    return ["-DPy_LIMITED_API=0x{:02x}{:02x}0000".format(*OLDEST_ABI)] if has_stable_abi() else []


def _distutils_compiler() -> Any:
    """Setuptools' compiler of this system, ready to run; it knows where Visual Studio is."""
    from setuptools._distutils.ccompiler import new_compiler

    compiler: Any = new_compiler()
    compiler.initialize()
    return compiler


def _compile_with_visual_studio(code: Path, draft: Path, name: str) -> None:
    compiler = _distutils_compiler()
    macros = [tuple(flag[2:].split("=")) for flag in _abi_flags()]
    include = [sysconfig.get_path("include")]
    try:
        made = compiler.compile(
            [str(code)], output_dir=str(code.parent), macros=macros, include_dirs=include, extra_postargs=["/O2"]
        )
        library_folder = [str(Path(sys.base_prefix) / "libs")]
        init = ["PyInit_" + name.rpartition(".")[2]]
        compiler.link_shared_object(made, str(draft), library_dirs=library_folder, export_symbols=init)
    except Exception as error:  # setuptools names its errors differently from version to version
        raise NativeError(f"the C compiler failed: {error}") from None


def _run(command: List[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=str(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        words = "\n".join(done.stdout.decode(errors="replace").splitlines()[-30:])
        raise NativeError("{} failed; its last words:\n{}".format(" ".join(command[:3]), words))


def _put(draft: Path, target: Path) -> None:
    """Replaces a module at once: a process that has the old one loaded goes on with it."""
    near = target.with_name(target.name + ".new")
    shutil.copyfile(str(draft), str(near))
    near.replace(target)


def cores() -> int:
    """How many processors this process may use: a container may have fewer than its machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def say(text: str) -> None:
    """Prints a line of progress."""
    print("[native] " + text, flush=True)


def main() -> int:
    """Does what the arguments say, or prints one plain message and returns 1."""
    parser = argparse.ArgumentParser(description="Compiles the loops of the package.")
    parser.add_argument("what", choices=["build", "test"])
    parser.add_argument("--checked", action="store_true", help="test without the sanitizers, which is faster")
    options, arguments = parser.parse_known_args()
    try:
        if options.what == "test":
            return run_tests("checked" if options.checked else "sanitize", arguments)
        build()
    except (NativeError, OSError) as error:
        print(f"\n[native] {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
