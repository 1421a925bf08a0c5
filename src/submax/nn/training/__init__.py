"""Training of all replicas at once."""
