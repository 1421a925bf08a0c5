"""Paths that several operations share."""

BANDIT = "/bandits/{name}"
"""The path of one bandit."""
