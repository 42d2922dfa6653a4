"""Readers, writers, and the finder of profiles."""
