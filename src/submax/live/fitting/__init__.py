"""New versions of a bandit's policy, from what has matured."""
