"""Facts about the events of one trace that several analyses need: related events, ops and source lines."""
