"""The log of the server: its form, and which requests are written to it."""
