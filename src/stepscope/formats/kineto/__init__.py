"""Kineto traces of PyTorch, and other Chrome trace JSON."""
