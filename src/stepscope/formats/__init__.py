"""Finds profiles, and reads and writes their formats."""
