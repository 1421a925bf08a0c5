"""Alarms: what changed that a person should look at, in metrics and on pages."""
