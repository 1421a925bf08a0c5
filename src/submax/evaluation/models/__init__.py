"""Models of the rewards of a log."""
