"""`stepscope over-time`: how a run that was watched has changed over hours and days."""

from __future__ import annotations

from stepscope.overtime.examine import MOST_CAPTURES, examine_run
from stepscope.overtime.report import OverTimeReport

__all__ = ["MOST_CAPTURES", "OverTimeReport", "examine_run"]
