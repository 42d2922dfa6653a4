"""A recording that a framework's profiler writes to a folder of its own."""

from __future__ import annotations

from pathlib import Path

from stepscope.capture.scratch import ScratchFolder
from stepscope.capture.tracers.base import Artifact, Collected
from stepscope.capture.tracers.giving_way import Possession
from stepscope.errors import CaptureError


class ExportFolder:
    """A temporary folder that a profiler exports to, outside the logdir: the profilers name their files so that two
    workers may overwrite each other, and end the program if the folder cannot be written."""

    def __init__(self, possession: Possession) -> None:
        self._possession = possession
        self._folder = ScratchFolder()
        self.path = self._folder.path

    def collect(self, host: str) -> Collected:
        """The XSpace file that was exported.  Raises CaptureError if there is none."""
        found = sorted(Path(self.path).glob("plugins/profile/*/*.xplane.pb"))
        if not found:
            raise CaptureError(
                "the framework's profiler wrote no profile",
                code="nothing-recorded",
                path=self.path,
                hint="look for its own message above; another profiler may have been running",
            )
        return self._possession.add_error(Collected((Artifact("xplane.pb", found[-1]),)))

    def close(self) -> None:
        """Removes the folder."""
        self._folder.remove()
