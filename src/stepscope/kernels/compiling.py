"""`compiled`: makes a loop a compiled one, on first use or from numba's cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys


def compiled(function: Any = None, **options: Any) -> Any:
    """A decorator; with options of numba's in parentheses, as `@compiled(inline="always")`.

    The code is kept beside the module, where that can be written to, or in `NUMBA_CACHE_DIR`, and calls run without the
    interpreter's lock.
    """
    if function is None:
        return _with(options)
    kernel = njit(nogil=True, **options)(function)
    kernel._cache = _CodeCache(function)
    return kernel


def _with(options: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda function: compiled(function, **options)


class _CodeCache(FunctionCache):  # type: ignore[misc]
    """Numba's own cache, except that reading it does not prepare for compiling.

    Before numba looks into its cache it makes all that it can compile known to its compiler: 250 modules, with SciPy's
    linear algebra where that is installed, 0.2 s to 0.5 s and 50 MB.  Code that is compiled already needs only what
    counts references to arrays.  Where the cache holds nothing, the compiler prepares itself as before.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
