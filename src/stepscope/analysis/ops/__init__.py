"""Ops, kernels and modules: how long each takes, how often it runs, how it was launched."""
