"""Calls back when a module has been imported, without importing it and without slowing down any other import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from stepscope.capture.report import NeverRaise
from stepscope.kernels import observe

Callback = Callable[[ModuleType], object]


class ImportHook:
    """A finder at the front of `sys.meta_path`.  It finds nothing itself: it asks the other finders, and watches.

    Args:
        wanted: the full name of a module -> what to call with it, once, when its code has run.
        on_start: called with the name when such an import starts.
    """

    def __init__(self, wanted: Mapping[str, Callback], on_start: Callable[[str], object] = lambda name: None) -> None:
        self._wanted = dict(wanted)
        self._on_start = on_start

    def install(self) -> None:
        """Watches from now on; calls back at once for modules that are imported already."""
        for name in [name for name in self._wanted if _is_complete(sys.modules.get(name))]:
            self._call_back(name)
        if self._wanted:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Ends the watch."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a wanted module from the other finders, with a loader that calls back; None for all others."""
        if name not in self._wanted:
            return None
        spec = self._find_by_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._on_start(name)
            self._wrap_loader(spec)
        return spec

    def _find_by_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = (
                None if finder is self else getattr(finder, "find_spec", None)
            )  # Python skips finders without it, too
            spec: ModuleSpec | None = find and find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _wrap_loader(self, spec: ModuleSpec) -> None:
        """Replaces the loader's method and not the loader, since other code may ask that for data and source."""
        loader: Any = spec.loader
        load = loader.exec_module

        def put_back(*_: object) -> bool:
            del loader.exec_module  # before the module runs: the loader is one of its attributes
            return True

        def call_back(*_: object) -> None:
            self._call_back(spec.name)

        with suppress(AttributeError):  # a loader that is a class or has slots: the framework is not watched
            if "exec_module" not in vars(loader):
                loader.exec_module = observe.stand_in(load, put_back, call_back, bool)

    def _call_back(self, name: str) -> None:
        callback = self._wanted.pop(name, None)
        if callback is None:
            return
        with NeverRaise(f"watching {name}", strict=False):
            callback(sys.modules[name])


def _is_complete(module: ModuleType | None) -> bool:
    """True if a module is imported and its code has finished."""
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)
