"""The callback for Hugging Face trainers: `stepscope.huggingface.ProfilerCallback`."""

from stepscope.capture.callbacks.huggingface import ProfilerCallback

__all__ = ["ProfilerCallback"]
