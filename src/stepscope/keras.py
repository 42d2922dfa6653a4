"""The callback for Keras: `stepscope.keras.ProfilerCallback`."""

from stepscope.capture.callbacks.keras import ProfilerCallback

__all__ = ["ProfilerCallback"]
