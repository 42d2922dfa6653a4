"""What the timeline shows: tracks, slices of a window at a level of detail, details of an event, search, selections.

Everything here is a function of one host's trace.  Nothing holds an object per event, and no answer is larger than what
a screen can show.
"""
