"""Evaluations of other policies on the log of a bandit, in processes of their own."""
