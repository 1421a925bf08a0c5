"""Load for live bandits: long logs, and clients of a server."""
