"""Live decisions: a bandit over a durable log of events."""
