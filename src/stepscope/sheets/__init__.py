"""A session as one file to send: HTML that needs no network, with charts and the evidence in the timeline."""
