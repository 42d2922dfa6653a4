"""Reads pickles of plain values without executing anything.

Unpickling an unknown file normally runs any code that it names.  Here no name is ever looked up: only dicts, lists,
tuples, texts and numbers are built, and a pickle that needs more is refused.
"""

from __future__ import annotations

import io
import pickle
from typing import NoReturn

from stepscope.errors import UnreadableError
from stepscope.kernels.pickles import claims_more_than_it_holds


class _PlainUnpickler(pickle.Unpickler):
    """Refuses classes and functions."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}, which is never imported")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError("the pickle refers to something outside itself")


def load_plain(data: bytes, source: str, hint: str) -> object:
    """The value of a pickle.  Raises UnreadableError if it is damaged or not of plain values."""
    try:
        if claims_more_than_it_holds(data):  # nine bytes can have Python make room for gigabytes
            raise pickle.UnpicklingError("it claims to hold more than it has bytes")
        return _PlainUnpickler(io.BytesIO(data)).load()
    except Exception as error:  # damaged pickles raise errors of any type
        reason = f"the pickle cannot be read: {str(error) or type(error).__name__}"
        raise UnreadableError(reason, code="pickle", path=source, lost="everything", hint=hint) from error
