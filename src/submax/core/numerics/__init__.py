"""Small numerical functions that handle all replicas at once."""
