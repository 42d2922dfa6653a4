"""Times the steps of a process as it is or with one setting: one of the processes of `stepscope prove --knobs`."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

from stepscope.capture.frameworks import find_cuda
from stepscope.capture.patches import Call, ImportHook, Undo, wrap_attribute
from stepscope.capture.proving.experiment import TOO_EARLY, Experiment, Steps
from stepscope.capture.proving.options import ProveOptions
from stepscope.proof.knobs import (
    CUDA,
    DATASETS,
    IN_PROCESS,
    JAX,
    LOADERS,
    TENSORFLOW,
    TF_GPU,
    TORCH,
    WORKERS,
    Setting,
    TimedRun,
)
from stepscope.proof.plan import FEWEST_STEPS

_SETTLE = 8  # steps before the first that counts: caches fill and workers start

_LOADER, _DATASET = "torch.utils.data.dataloader", "tensorflow.python.data.ops.dataset_ops"
_KNOBS_OF_LOADER = {"workers": "num_workers", "prefetch": "prefetch_factor", "pin_memory": "pin_memory"}
_FOR_WORKERS_ONLY = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")


class KnobTurner:
    """Turns a knob of the objects that the program makes, and notes which it makes.

    Args:
        setting: the name of one; empty, or that of a variable of the environment, to turn nothing.

    Attributes:
        made: of `LOADERS`, `WORKERS` and `DATASETS` what the program has made.
        applied: whether the knob has been turned anywhere.
        refused: why an object was left as the program made it; empty if none was.
    """

    def __init__(self, setting: str) -> None:
        knob = Setting.parse(setting)
        read = IN_PROCESS.get(knob.knob)
        self._knob, self._value = (knob.knob, read(knob.value)) if read else ("", None)
        self.made: set[str] = set()
        self.applied = not read
        self.refused = ""

    def install(self) -> Undo:
        """Watches imports from now on."""
        imports = ImportHook({_LOADER: self._watch_loaders, _DATASET: self._watch_datasets})
        imports.install()
        return imports.remove

    @property
    def note(self) -> str:
        """Why the setting has changed nothing; empty if it has."""
        where = "tf.data" if self._knob == "autotune" else "a DataLoader"
        return "" if self.applied else self.refused or f"the program did not create {where} before its steps"

    def _watch_loaders(self, module: ModuleType) -> None:
        signature = inspect.signature(module.DataLoader.__init__)

        def prepare_with_setting(prepare: Call, *args: Any, **kwargs: Any) -> None:
            given = signature.bind(*args, **kwargs)
            self.made |= {LOADERS, WORKERS} if given.arguments.get("num_workers") else {LOADERS}
            if self._knob in _KNOBS_OF_LOADER:
                self._turn_loader(given.arguments, isinstance(given.arguments["dataset"], module.IterableDataset))
            prepare(*given.args, **given.kwargs)

        wrap_attribute(module.DataLoader, "__init__", prepare_with_setting)

    def _turn_loader(self, arguments: dict[str, Any], is_iterable: bool) -> None:
        if self._knob == "workers" and is_iterable:
            self.refused = "each worker of an iterable dataset gives all its samples"
        elif self._knob == "prefetch" and not arguments.get("num_workers"):
            self.refused = "the loader has no workers that could prefetch"
        else:
            arguments[_KNOBS_OF_LOADER[self._knob]] = self._value
            self.applied = True
        if not arguments.get("num_workers"):
            for name in _FOR_WORKERS_ONLY:
                arguments.pop(name, None)

    def _watch_datasets(self, module: ModuleType) -> None:
        def iterate_with_setting(iterate: Call, made: Any) -> Any:
            self.made.add(DATASETS)
            if self._knob == "autotune":
                options = sys.modules["tensorflow"].data.Options()
                options.autotune.enabled = self._value
                made, self.applied = made.with_options(options), True
            return iterate(made)

        wrap_attribute(module.DatasetV2, "__iter__", iterate_with_setting)


class Stopwatch(Experiment):
    """Times steps for a while, and changes nothing.

    Args:
        options: with what is timed, how long, and the file for the answer.
        settings: those of this process.
        clock: the time in seconds.
    """

    def __init__(
        self, options: ProveOptions, settings: KnobTurner, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        super().__init__(options, lambda line: None, clock)
        self._settings = settings
        self._timed: list[float] = []
        self._why_nothing = TOO_EARLY

    def _measure(self) -> Steps[None]:
        yield from self._collect(_SETTLE)
        end_s = self._clock() + self._options.budget_s
        while self._clock() < end_s or len(self._timed) < FEWEST_STEPS:
            self._timed += (yield from self._collect(1)).steps

    def conclude(self, why_nothing: str) -> None:
        """There will be no more steps."""
        self._why_nothing = why_nothing

    def save(self, session: Path) -> None:
        """Writes the answer.

        Args:
            session: where the capture of this process lies, if it made one.
        """
        enough = len(self._timed) >= FEWEST_STEPS
        found = TimedRun(
            self._options.setting,
            1e3 * fmean(self._timed) if enough else None,
            len(self._timed),
            tuple(sorted(self._settings.made | _find_frameworks())),
            str(session),
            self._settings.note if enough else self._why_nothing,
        )
        Path(self._options.output).write_text(found.to_json(), "utf-8")


def _find_frameworks() -> set[str]:
    """The frameworks of this process, and whether they use a GPU."""
    found = {name for name in (TORCH, TENSORFLOW, JAX) if name in sys.modules}
    tensorflow = sys.modules.get(TENSORFLOW)
    if find_cuda() is not None:
        found.add(CUDA)
    if tensorflow is not None and tensorflow.config.list_physical_devices("GPU"):
        found.add(TF_GPU)
    return found
