"""Stepscope in notebooks: the timeline as a widget, and the magics of `%load_ext stepscope`."""
