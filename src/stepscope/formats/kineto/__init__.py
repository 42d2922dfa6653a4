"""PyTorch's Kineto traces and Chrome trace JSON."""
