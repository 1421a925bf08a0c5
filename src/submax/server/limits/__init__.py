"""Limits on requests: their size, their rate, and where they come from."""
