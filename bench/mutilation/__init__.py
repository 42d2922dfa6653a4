"""Recordings whose answer is known, made poorer in every way that recordings of strangers are: `bench.mutilations`."""
