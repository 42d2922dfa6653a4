"""`stepscope over-time`: how a run that was watched has changed over hours and days."""

from __future__ import annotations

from stepscope.overtime.examine import examine_run
from stepscope.overtime.report import OverTimeReport

__all__ = ["OverTimeReport", "examine_run"]
