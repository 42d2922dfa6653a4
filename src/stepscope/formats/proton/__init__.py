"""Profiles of Triton's Proton: the time of kernels, added up for each path of scopes or calls."""
