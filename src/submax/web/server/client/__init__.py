"""Clients for bandits over HTTP; they need nothing but the standard library and msgspec."""
