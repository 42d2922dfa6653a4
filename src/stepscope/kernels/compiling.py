"""`compiled`: makes a loop a compiled one, on first use or from numba's cache."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

from stepscope.kernels import waiting


def compiled(function: Any = None, *, allocates: bool = False, **options: Any) -> Any:
    """A decorator; with options in parentheses, as `@compiled(inline="always")`.

    The code is kept beside the module, where that can be written to, or in `NUMBA_CACHE_DIR`, and calls run without the
    interpreter's lock.

    Args:
        function: what to compile.
        allocates: it makes arrays.  Others keep no count of references to arrays, which takes up to a third of a loop's
            time, and need not have what counts them.
        options: numba's.
    """
    if function is None:
        return partial(compiled, allocates=allocates, **options)
    if not _IS_AS_KNOWN:
        return njit(cache=True, nogil=True, **options)(function)
    kernel = njit(nogil=True, _nrt=allocates, **options)(function)
    kernel._cache = _CodeCache(function, allocates)
    return kernel


class _Clock(event.Listener):  # type: ignore[misc]
    """Notes when numba compiles; what it finds in its cache is no such event."""

    def on_start(self, event: Any) -> None:
        waiting.began()

    def on_end(self, event: Any) -> None:
        waiting.ended()


event.register("numba:compile", _Clock())


# What `_CodeCache` takes for granted of numba's insides, as they are from 0.60 to 0.68; others compile the plain way.
_IS_AS_KNOWN = all(
    hasattr(FunctionCache, name) for name in ("_load_overload", "_index_key", "_guard_against_spurious_io_errors")
) and hasattr(rtsys, "initialize")


class _CodeCache(FunctionCache):  # type: ignore[misc]
    """Numba's own cache, except that reading it prepares for no compiling, and that it looks at the functions of
    other files that went into the code.

    Before numba looks into its cache it makes all that it can compile known to its compiler: 250 modules, with SciPy's
    linear algebra where that is installed, 0.2 s to 0.5 s and 50 MB.  Code that is compiled already needs at most what
    counts references to arrays.  Where the cache holds nothing, the compiler prepares itself as before.
    """

    def __init__(self, function: Any, allocates: bool) -> None:
        super().__init__(function)
        self._allocates = allocates

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if self._allocates:
            rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), self._allocates, _parts_elsewhere(self._py_func))


def _parts_elsewhere(function: Any) -> tuple[object, ...]:
    """What the compiled code of a function is made of besides its own file, which is all that numba looks at: the files
    of the functions that it calls, and the numbers that it names."""
    own, files, numbers = function.__code__.co_filename, set(), set()
    todo, seen = [function], {function}
    while todo:
        code, names = (each := todo.pop()).__code__, each.__globals__
        files.add(code.co_filename)
        for name in code.co_names:
            value = names.get(name)
            if isinstance(value, int):
                numbers.add((name, value))
            called = getattr(value, "py_func", None) or getattr(value, "_defn", None)
            if called is not None and called not in seen:
                seen.add(called)
                todo.append(called)
    return *(_stamp(file) for file in sorted(files - {own})), *sorted(numbers)


def _stamp(file: str) -> tuple[float, int] | None:
    try:
        status = os.stat(file)  # noqa: PTH116
    except OSError:  # packed with other files into one, which is not changed
        return None
    return status.st_mtime, status.st_size
