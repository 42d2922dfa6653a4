"""The model of a step that can be replayed, and the one account of its time that every page reads."""
