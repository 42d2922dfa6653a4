"""What AMD's rocprofv3 writes as JSON."""
