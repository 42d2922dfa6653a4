"""Device memory profiles of JAX (`*.prof`), in the format of pprof."""
