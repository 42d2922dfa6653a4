"""The large profiles, which are built once by a separate process and kept in a cache folder.

This module imports little.  A new process counts the memory of the process that started it as its own peak until it
runs another program, so the measuring process must be small.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

VERSION = 1
REPOSITORY = Path(__file__).resolve().parents[1]
CORPUS_FILE = "corpus/tf-gpu-multi-worker/plugins/profile/2020_12_01_00_00_00/34.83.195.179_6003.xplane.pb"


@dataclass(frozen=True)
class BenchProfile:
    """A profile on disk.

    Attributes:
        path: the file, inside a logdir of its own.
        bytes: its size.
        events: how many events it holds.
        repetitions: how often the base was repeated.
        base: where it came from.
    """

    path: Path
    bytes: int
    events: int
    repetitions: int
    base: str


def folder() -> Path:
    """The folder of built profiles: STEPSCOPE_BENCH_DIR or ~/.cache/stepscope-bench."""
    return Path(os.environ.get("STEPSCOPE_BENCH_DIR") or Path.home() / ".cache" / "stepscope-bench")


def shared_file(name: str) -> Path | None:
    """A recorded profile to repeat, below STEPSCOPE_SHARED or ../shared beside the checkout; None if there is none."""
    shared = os.environ.get("STEPSCOPE_SHARED") or REPOSITORY.parent / "shared"
    path = Path(shared, name)
    return path if path.exists() else None


def obtain(events: int, source: Path | None = None) -> BenchProfile:
    """A profile of about `events` events (whole repetitions), built now or earlier.

    `source` is the profile to repeat: by default a recorded one, or a made-up one if that is missing.
    """
    source = source or shared_file(CORPUS_FILE)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:8] if source else "synthetic"
    home = folder() / f"v{VERSION}-{digest}-{events}"
    facts = home / "profile.json"
    if not facts.exists():
        arguments = [str(home), str(events), *([str(source)] if source else [])]
        subprocess.run([sys.executable, "-m", "bench.profiles", *arguments], cwd=REPOSITORY, check=True)
    made = json.loads(facts.read_text())
    return BenchProfile(home / made["path"], made["bytes"], made["events"], made["repetitions"], made["base"])


def read_once(profile: BenchProfile) -> None:
    """Brings the file into the page cache."""
    with profile.path.open("rb") as file:
        while file.read(1 << 24):
            pass


def _build(home: Path, events: int, source: Path | None) -> None:
    from bench import build, synthetic

    name = source.name if source else "synthetic.xplane.pb"
    path = home / "plugins" / "profile" / "bench" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    half_made = path.with_name(f"{name}.{os.getpid()}")
    written, repetitions = build.build_profile(
        source.read_bytes() if source else synthetic.build_synthetic(), events, half_made
    )
    half_made.replace(path)
    made = {
        "path": str(path.relative_to(home)),
        "bytes": path.stat().st_size,
        "events": written,
        "repetitions": repetitions,
        "base": name,
    }
    (home / "profile.json").write_text(json.dumps(made))


if __name__ == "__main__":
    _build(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
