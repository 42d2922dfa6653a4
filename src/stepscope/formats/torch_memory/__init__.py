"""Memory snapshots of PyTorch's CUDA allocator (`*.pickle`)."""
