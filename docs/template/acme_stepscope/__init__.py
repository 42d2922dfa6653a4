"""What Acme adds to Stepscope."""
