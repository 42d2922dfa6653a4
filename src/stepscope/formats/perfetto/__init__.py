"""Perfetto's protobuf traces."""
