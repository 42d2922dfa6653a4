"""A temporary folder that belongs to the process that made it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class ScratchFolder:
    """A temporary folder, removed by `remove`, when nobody holds it any more, or at the end of the program.

    A forked child forgets the capture of its parent, or ends as any program does.  `tempfile.TemporaryDirectory` would
    then take the folder away from the parent.

    Attributes:
        path: where it is.
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="stepscope-")
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def remove(self) -> None:
        """Removes the folder and what is in it, as far as that can be.  Harmless when repeated."""
        self._remove()


def _remove(path: str, maker: int) -> None:
    if os.getpid() == maker:
        shutil.rmtree(path, ignore_errors=True)
