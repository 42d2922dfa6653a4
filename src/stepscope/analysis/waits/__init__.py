"""Waiting: idle devices, synchronizing calls, and the critical path of a step."""
