"""The tools: pure functions of traces.  They know no file format and no screen."""
