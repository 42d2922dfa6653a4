"""Training jobs of many ranks, whose times and faults are known because they are simulated."""
