"""A server with simulated visitors, to look at."""
