"""Sends the requests of several threads or tasks together."""
