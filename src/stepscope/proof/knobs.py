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
from stepscope.proof.estimate import estimate
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
        knob, _, value = text.partition("=")
        return cls(knob, value)


IN_PROCESS: dict[str, Callable[[str], object]] = {
    "workers": int,
    "prefetch": int,
    "pin_memory": lambda value: {"on": True, "off": False}[value],
    "autotune": lambda value: {"on": True, "off": False}[value],
}
"""Knobs of objects that the program makes, and how to read their values: of PyTorch's loaders and of tf.data."""


@dataclass(frozen=True)
class Knob:
    """A knob that is tried by itself.

    Attributes:
        name: as in Setting.
        needs: what a process must have for it to matter.
        values: what to try on a machine with so many processors.
    """

    name: str
    needs: frozenset[str]
    values: Callable[[int], Sequence[int | str]]


def _thread_counts(processors: int) -> list[int]:
    """One thread, half of the processors, all of them."""
    return sorted({1, max(1, processors // 2), processors})


KNOBS: tuple[Knob, ...] = (
    Knob("OMP_NUM_THREADS", frozenset({TORCH}), _thread_counts),
    Knob("TF_NUM_INTRAOP_THREADS", frozenset({TENSORFLOW}), _thread_counts),
    Knob("TF_NUM_INTEROP_THREADS", frozenset({TENSORFLOW}), _thread_counts),
    Knob("NPROC", frozenset({JAX}), _thread_counts),
    Knob("workers", frozenset({LOADERS}), lambda processors: sorted({0, max(1, processors // 2), processors})),
    Knob("prefetch", frozenset({LOADERS, WORKERS}), lambda processors: (4, 8)),
    Knob("pin_memory", frozenset({LOADERS, CUDA}), lambda processors: ("on",)),
    Knob("autotune", frozenset({DATASETS}), lambda processors: ("off",)),
    Knob("PYTORCH_CUDA_ALLOC_CONF", frozenset({CUDA}), lambda processors: ("expandable_segments:True",)),
    Knob("TF_GPU_THREAD_MODE", frozenset({TF_GPU}), lambda processors: ("gpu_private",)),
)
"""In the order in which they are tried.  `OMP_NUM_THREADS` counts PyTorch's threads in an op, `NPROC` XLA's on CPUs."""


@dataclass(frozen=True)
class TimedRun:
    """What the steps of one process took.

    Attributes:
        setting: its name; empty for the program as it is.
        step_ms: the mean; None if there were too few steps.
        steps: how many were timed.
        has: what the process had, see `Knob.needs`.
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
        Setting(knob.name, str(value))
        for knob in KNOBS
        if knob.needs <= set(has)
        for value in knob.values(processors)
        if present.get(knob.name) != str(value)
    ]


def order_of_round(settings: Sequence[Setting | None], number: int) -> list[Setting | None]:
    """The settings of a round in its random order."""
    order = list(settings)
    random.Random(f"{SEED}:{number}").shuffle(order)
    return order


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
    found = estimate([plain.step_ms / run.step_ms for plain, run in pairs])  # type: ignore[operator]
    if found is None:
        notes = [run.note for pair in timed for run in reversed(pair) if run.note]
        return Proof(program, KNOB, name, note=notes[0] if notes else "no process ended with a time")
    plain_ms = sum(plain.step_ms or 0.0 for plain, _ in pairs) / len(pairs)
    has_interval = len(pairs) >= FEWEST_ROUNDS
    return Proof(
        program,
        KNOB,
        name,
        step_ms=plain_ms,
        changed_ms=plain_ms / found.value,
        value=found.value,
        least=found.least if has_interval else None,
        most=found.most if has_interval else None,
        pairs=len(pairs),
        steps=sum(plain.steps + run.steps for plain, run in pairs),
    )
