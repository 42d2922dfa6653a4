"""The XLA programs that a trace holds, as columns: instructions, what they refer to, shapes, and source lines."""
