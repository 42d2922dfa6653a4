"""Dumps of PyTorch's flight recorder: the last collectives of each rank, whether they ended or not."""
