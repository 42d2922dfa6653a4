"""A recording that a framework's profiler writes to a folder."""

from __future__ import annotations

from pathlib import Path

from stepscope.capture.aside import Helper
from stepscope.capture.scratch import ScratchFolder
from stepscope.capture.tracers.base import Artifact, Collected
from stepscope.capture.tracers.giving_way import Possession
from stepscope.errors import CaptureError


class ExportFolder:
    """A temporary folder, outside the logdir, that a profiler exports to.  In the logdir, two workers might overwrite
    each other's files, and a folder that cannot be written would end the program."""

    def __init__(self, possession: Possession) -> None:
        self._possession = possession
        self._folder = ScratchFolder()
        self.path = self._folder.path

    def write(self, content: bytes) -> None:
        """Stores an XSpace that a profiler has handed over, where one that exports would have put it."""
        folder = Path(self.path) / "plugins" / "profile" / "run"
        folder.mkdir(parents=True)
        (folder / "host.xplane.pb").write_bytes(content)

    def collect(self, host: str, helper: Helper) -> Collected:
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
