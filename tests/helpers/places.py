"""Where the checkout and the shared profiles lie."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HELPERS = Path(__file__).resolve().parent


def shared_folder() -> Path:
    """The folder with real profiles that are not part of the project."""
    return Path(os.environ.get("STEPSCOPE_SHARED") or ROOT.parent / "shared")
