"""Training rows, in memory and in the store."""
