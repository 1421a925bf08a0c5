"""What the log of a bandit says."""
