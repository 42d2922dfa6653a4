"""`stepscope doctor`: explains why profiles or pages are empty, and what to do about it."""

from __future__ import annotations

from stepscope.doctor.logdir import examine_logdir
from stepscope.doctor.machine import examine_machine
from stepscope.doctor.report import Check, DoctorReport

__all__ = ["Check", "DoctorReport", "examine_logdir", "examine_machine"]
