"""Training programs with one bottleneck each, slow and fixed."""
