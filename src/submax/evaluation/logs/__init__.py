"""Logs of decisions."""
