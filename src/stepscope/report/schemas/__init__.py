"""The JSON Schemas of the tools' results, a file each, made by `scripts/gen_types.py`."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
NO_TOOLS = frozenset({"findings", "compare", "doctor", "gate", "runs", "whatif"})
"""What has a schema and is no tool."""
