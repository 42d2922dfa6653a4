"""Breaks files on purpose, guided by what code each file reaches: `python fuzz/run.py TARGET [options]`.

Builds a copy of the package with instrumented loops, for which it needs clang; each target has its own, so that several
can run at once.  Then it makes seeds and hands over to `target.py`, which runs libFuzzer by way of atheris (`pip
install atheris`).  Options such as `-max_total_time=600` go to libFuzzer.  It ends at the first finding and writes the
file that causes it beside the corpus, in `build/fuzz/`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "src")]

import seeds  # noqa: E402

import native  # noqa: E402

_SHORTEST_LIMIT = 4096  # bytes of an input
_DEFAULTS = ["-timeout=20", "-rss_limit_mb=3000"]


def main() -> int:
    """Runs one target; returns libFuzzer's status."""
    name, options = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if name not in seeds.MAKERS:
        print(f"usage: run.py {'|'.join(seeds.MAKERS)} [options of libFuzzer]", file=sys.stderr)
        return 2
    runtime = _runtime()
    if runtime is None or shutil.which("clang") is None:
        print("fuzzing needs clang, and atheris (pip install atheris) for this Python", file=sys.stderr)
        return 1
    os.environ["CC"] = "clang"
    copy, corpus = ROOT / "build" / f"native-fuzz-{name}", ROOT / "build" / "fuzz" / name
    native.build_copy(copy, "fuzz")
    corpus.mkdir(parents=True, exist_ok=True)
    starts = list(seeds.MAKERS[name]())
    for number, seed in enumerate(starts):
        (corpus / f"seed-{number}").write_bytes(seed)
    longest = f"-max_len={max(_SHORTEST_LIMIT, *(2 * len(seed) for seed in starts))}"
    environment = dict(
        os.environ,
        PYTHONPATH=str(copy / "src"),
        LD_PRELOAD=str(runtime),
        PYTHONMALLOC="malloc",
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
    )
    command = [sys.executable, str(ROOT / "fuzz" / "target.py"), name, str(corpus)]
    found = f"-artifact_prefix={corpus.parent}/{name}-"
    return subprocess.run([*command, found, longest, *_DEFAULTS, *options], env=environment).returncode


def _runtime() -> Path | None:
    """The sanitizer's library with libFuzzer in it, which comes with atheris."""
    spec = importlib.util.find_spec("asan_with_fuzzer")
    return Path(spec.origin) if spec is not None and spec.origin else None


if __name__ == "__main__":
    sys.exit(main())
