"""Stored feedback, and how networks are trained on it."""
