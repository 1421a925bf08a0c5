"""Small numerical functions for all replicas at once."""
