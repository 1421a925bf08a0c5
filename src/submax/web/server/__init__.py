"""Bandits over HTTP, and a client for them."""
