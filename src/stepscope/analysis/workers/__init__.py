"""Compares hosts, ranks and collectives, and finds the straggler."""
