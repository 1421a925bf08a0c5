"""Finds single decisions in the log, and says why they were made."""
