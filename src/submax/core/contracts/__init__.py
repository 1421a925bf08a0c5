"""Base classes of policies and environments, and the records that they exchange."""
