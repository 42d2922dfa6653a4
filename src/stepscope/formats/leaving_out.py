"""What is not kept of a file that is read for one answer alone.  No numpy here: reading starts before it is there."""

from __future__ import annotations

# Half of the stats of a TensorFlow profile, which most tools do not read; some only say that an event has them.
LEFT_OUT = frozenset((
    "num_output_edges", "num_output_control_edges", "kernel_name", "context_id", "is_eager", "kernel_details", "from",
    "to", "edge_name", "peak_bytes_in_use", "requested_bytes", "bytes_reserved", "bytes_allocated", "bytes_available",
    "fragmentation", "allocation_bytes", "addr", "allocator_name", "region_type",
))  # fmt: skip
