"""Logs, learning from them, and what other policies would have earned."""
