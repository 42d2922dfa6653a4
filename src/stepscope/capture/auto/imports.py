"""Calls back when a module has been imported, without importing it and without delay to any other import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from stepscope.capture.report import report

Callback = Callable[[ModuleType], object]


class ImportWatch:
    """A finder at the front of `sys.meta_path` that finds nothing itself: it has the others find, and looks on.

    Args:
        wanted: the full name of a module -> what to call with it, once, when its code has run.
        begins: called with the name when such an import begins.
    """

    def __init__(self, wanted: Mapping[str, Callback], begins: Callable[[str], object] = lambda name: None) -> None:
        self._wanted = dict(wanted)
        self._begins = begins

    def install(self) -> None:
        """Watches from now on; what is imported already is called back for now."""
        for name in [name for name in self._wanted if _is_complete(sys.modules.get(name))]:
            self._call_back(name)
        if self._wanted:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Watches no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where the other finders find a module that is waited for, with a loader that tells; None for all others."""
        if name not in self._wanted:
            return None
        spec = self._find_by_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._begins(name)
            self._wrap_loader(spec)
        return spec

    def _find_by_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)  # Python, too, steps over one without
            spec: ModuleSpec | None = find and find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _wrap_loader(self, spec: ModuleSpec) -> None:
        """Replaces the loader's method rather than the loader, which others ask for its data and its source."""
        loader = spec.loader
        assert loader is not None
        load = loader.exec_module

        def load_and_call_back(module: ModuleType) -> None:
            load(module)
            self._call_back(spec.name)

        try:
            loader.exec_module = load_and_call_back  # type: ignore[method-assign]
        except AttributeError:  # a loader that is a class or has slots: the framework goes unseen
            return

    def _call_back(self, name: str) -> None:
        callback = self._wanted.pop(name, None)
        if callback is None:
            return
        try:
            callback(sys.modules[name])
        except Exception as error:
            report(error, f"watching {name}")


def _is_complete(module: ModuleType | None) -> bool:
    """True if a module is there, and its code has run to the end."""
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)
