"""What advice is based on beyond the step breakdown, for one host."""
