"""Memory and machine counters: how full and how busy, moment by moment."""
