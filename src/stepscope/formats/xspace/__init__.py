"""XSpace: the protobuf that TensorFlow, JAX and PyTorch/XLA store profiles in (`*.xplane.pb`)."""
