"""A temporary folder that belongs to the process that made it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class ScratchFolder:
    """A temporary folder.  It is removed by `remove`, when nothing refers to it any more, or at the end of the program.

    A forked child never removes it.  With `tempfile.TemporaryDirectory`, a child that ends, or that forgets its
    parent's capture, would remove the parent's folder.

    Attributes:
        path: where it is.
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="stepscope-")
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def remove(self) -> None:
        """Removes the folder with its content, as far as possible.  May be called more than once."""
        self._remove()


def _remove(path: str, maker: int) -> None:
    if os.getpid() == maker:
        shutil.rmtree(path, ignore_errors=True)
