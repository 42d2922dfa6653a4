"""XSpace: the protobuf in which TensorFlow, JAX and PyTorch/XLA store profiles (`*.xplane.pb`)."""
