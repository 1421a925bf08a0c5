"""Training of the networks of all replicas at once."""
