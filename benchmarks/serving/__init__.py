"""The server under load, and what it is compared with."""
