"""The callback for PyTorch Lightning: `stepscope.lightning.ProfilerCallback`."""

from stepscope.capture.callbacks.lightning import ProfilerCallback

__all__ = ["ProfilerCallback"]
