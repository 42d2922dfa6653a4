"""The build hook: makes the page before it is packed.

A wheel, an editable installation and a source distribution all carry the built page; a wheel that is made from a source
distribution needs no Node.js, since the page in it is already that of its sources.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent / "scripts"))

import frontend


class PageHook(BuildHookInterface[Any]):
    """Builds `frontend/` into `src/stepscope/web/static/`."""

    def dependencies(self) -> list[str]:
        """A Node.js, where the machine has none."""
        return frontend.needed_packages(Path(self.root))

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the page if its sources changed; ends the installation with a plain message if that is impossible."""
        try:
            frontend.build(Path(self.root))
        except frontend.FrontendError as error:
            print(f"\n[page] {error}\n", file=sys.stderr)
            raise SystemExit(1) from None
