"""The input pipeline: what reads and prepares batches, and how long steps wait for them."""
