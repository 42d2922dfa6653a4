"""PyTorch's Kineto traces and Chrome trace JSON."""

from stepscope.formats.kineto.reader import read

__all__ = ["read"]
