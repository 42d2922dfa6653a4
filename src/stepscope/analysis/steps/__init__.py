"""The steps of a trace: where each starts and ends, its breakdown, and the verdict on it."""
