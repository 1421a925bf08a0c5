"""Policies on value networks."""
