"""Hosts, ranks and collectives side by side, and which of them holds up the others."""
