"""Open connections to a server."""
