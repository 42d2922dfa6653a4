"""The steps of a trace: their bounds, their breakdown, and the verdict."""
