"""Settings that a user may turn without changing what a program computes, and what runs with and without them say.

Each setting gets processes of its own.  A round is one process with every setting and one with none, in random order,
next to each other in time, so that what else happens on the machine meets all alike; a round gives one ratio of step
times for each setting, and `estimate` makes a figure and an interval of those.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields

from stepscope.errors import UsageError
from stepscope.proof.pairs import estimate_ratio
from stepscope.proof.plan import SEED
from stepscope.proof.record import KNOB, Proof
from stepscope.records import dataclass

FEWEST_ROUNDS = 6  # with fewer ratios no interval of 95 % exists without a model of the noise

# What a timed process found in itself: modules that it has imported, and things that it has made.
TORCH, TENSORFLOW, JAX = "torch", "tensorflow", "jax"
LOADERS, WORKERS, DATASETS, CUDA, TF_GPU = "loaders", "workers", "datasets", "cuda", "tensorflow gpu"


@dataclass(frozen=True)
class Setting:
    """One knob at one value.

    Attributes:
        knob: a variable of the environment, or one of the names in `IN_PROCESS`.
        value: as the user or the table gave it.
    """

    knob: str
    value: str

    @property
    def name(self) -> str:
        """For people, and to find the proof again."""
        return f"{self.knob}={self.value}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables to set for a process."""
        return {} if self.knob in IN_PROCESS else {self.knob: self.value}

    @classmethod
    def parse(cls, text: str) -> Setting:
        """The setting with this name."""
        return cls(*text.partition("=")[::2])


IN_PROCESS: dict[str, Callable[[str], object]] = {
    "workers": int,
    "prefetch": int,
    "pin_memory": lambda value: {"on": True, "off": False}[value],
    "autotune": lambda value: {"on": True, "off": False}[value],
}
"""Knobs of objects that the program makes, and how to read their values: of PyTorch's loaders and of tf.data."""


def _thread_counts(processors: int) -> list[int]:
    """One thread, half of the processors, all of them."""
    return sorted({1, max(1, processors // 2), processors})


KNOBS: dict[str, tuple[set[str], Callable[[int], Sequence[int | str]]]] = {
    "OMP_NUM_THREADS": ({TORCH}, _thread_counts),
    "TF_NUM_INTRAOP_THREADS": ({TENSORFLOW}, _thread_counts),
    "TF_NUM_INTEROP_THREADS": ({TENSORFLOW}, _thread_counts),
    "NPROC": ({JAX}, _thread_counts),
    "workers": ({LOADERS}, lambda processors: sorted({0, max(1, processors // 2), processors})),
    "prefetch": ({LOADERS, WORKERS}, lambda processors: (4, 8)),
    "pin_memory": ({LOADERS, CUDA}, lambda processors: ("on",)),
    "autotune": ({DATASETS}, lambda processors: ("off",)),
    "PYTORCH_CUDA_ALLOC_CONF": ({CUDA}, lambda processors: ("expandable_segments:True",)),
    "TF_GPU_THREAD_MODE": ({TF_GPU}, lambda processors: ("gpu_private",)),
}
"""What is tried by itself, in this order: what a process must have for a knob to matter, and the values to try on a
machine with so many processors.  `OMP_NUM_THREADS` counts PyTorch's threads in an op, `NPROC` XLA's on CPUs."""


@dataclass(frozen=True)
class TimedRun:
    """What the steps of one process took.

    Attributes:
        setting: its name; empty for the program as it is.
        step_ms: the mean; None if there were too few steps.
        steps: how many were timed.
        has: what the process had, see `KNOBS`.
        session: the folder of what it captured; empty for nothing.
        note: why there is no time, or why the setting changed nothing.
    """

    setting: str = ""
    step_ms: float | None = None
    steps: int = 0
    has: tuple[str, ...] = ()
    session: str = ""
    note: str = ""

    def to_json(self) -> str:
        """The text that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> TimedRun:
        """Raises ValueError or TypeError for anything else."""
        read = json.loads(text)
        known = {field.name: read[field.name] for field in fields(cls) if field.name in read}
        return cls(**known | {"has": tuple(known.get("has", ()))})


def parse_knob(text: str) -> list[Setting]:
    """The settings of `NAME=VALUE,...`, as after `--knob`.

    Raises:
        UsageError: there is no value, or one that the knob cannot have.
    """
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise UsageError(f"--knob {text!r} names no value", hint="write NAME=VALUE,VALUE, such as workers=0,2")
    settings = [Setting(name, value) for value in values.split(",")]
    read = IN_PROCESS.get(name)
    for setting in settings if read else ():
        try:
            read(setting.value)  # type: ignore[misc]
        except (ValueError, KeyError):
            what = "on or off" if name in ("pin_memory", "autotune") else "a number"
            raise UsageError(f"--knob {setting.name}: {name} is {what}") from None
    return settings


def choose_settings(has: Sequence[str], processors: int, present: dict[str, str]) -> list[Setting]:
    """What to try on a program by itself.

    Args:
        has: what it has.
        present: the variables of its environment: a value that it has already is not tried again.
    """
    return [
        Setting(name, str(value))
        for name, (needs, values) in KNOBS.items()
        if needs <= set(has)
        for value in values(processors)
        if present.get(name) != str(value)
    ]


def order_of_round(settings: Sequence[Setting | None], number: int) -> list[Setting | None]:
    """The settings of a round in its random order."""
    return random.Random(f"{SEED}:{number}").sample(list(settings), len(settings))


def prove_settings(program: str, settings: Sequence[Setting], rounds: Sequence[Sequence[TimedRun]]) -> list[Proof]:
    """A proof of each setting, the fastest first; those without a figure last.

    Args:
        rounds: the runs of each round, one of them without a setting.
    """
    proofs = [_prove_setting(program, setting.name, rounds) for setting in settings]
    return sorted(proofs, key=lambda proof: -(proof.value or 0.0))


def _prove_setting(program: str, name: str, rounds: Sequence[Sequence[TimedRun]]) -> Proof:
    runs = [{run.setting: run for run in runs} for runs in rounds]
    timed = [(each[""], each[name]) for each in runs if "" in each and name in each]
    pairs = [(plain, run) for plain, run in timed if plain.step_ms and run.step_ms and not run.note]
    found = estimate_ratio([(plain.step_ms, run.step_ms) for plain, run in pairs])  # type: ignore[misc]
    if found is None:
        notes = [run.note for pair in timed for run in reversed(pair) if run.note]
        return Proof(program, KNOB, name, note=notes[0] if notes else "no process ended with a time")
    plain_ms = sum(plain.step_ms or 0.0 for plain, _ in pairs) / len(pairs)
    steps = sum(plain.steps + run.steps for plain, run in pairs)
    proof = Proof(program, KNOB, name, step_ms=plain_ms, changed_ms=plain_ms / found.value, steps=steps)
    return proof.with_estimate(found)
