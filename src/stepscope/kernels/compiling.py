"""`compiled`: makes a loop a compiled one, on first use or from numba's cache."""

from __future__ import annotations

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
    """Numba's own cache, except that reading it does not prepare for compiling.

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
        return (*super()._index_key(sig, codegen), self._allocates)
