"""XLA programs in a trace: their instructions, what these cost, their memory and their graph."""
