"""XSpace profiles as records of a Riegeli file."""
