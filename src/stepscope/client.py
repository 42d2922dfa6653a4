"""Captures running jobs: `from stepscope.client import trace`."""

from stepscope.capture.client import (
    CaptureOutcome,
    CaptureRequest,
    Cause,
    ContinuousProfiling,
    Failure,
    OnProgress,
    Phase,
    WorkerStatus,
    capture_workers,
    check,
    monitor,
    trace,
)

__all__ = [
    "CaptureOutcome",
    "CaptureRequest",
    "Cause",
    "ContinuousProfiling",
    "Failure",
    "OnProgress",
    "Phase",
    "WorkerStatus",
    "capture_workers",
    "check",
    "monitor",
    "trace",
]
