"""Decisions within a deadline."""
