"""Alarms: what changed that a person should look at, shown and sent to a webhook."""
