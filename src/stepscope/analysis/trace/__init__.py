"""Facts about the events of one trace that several analyses ask for: which belong together, which op, which line."""
