"""Learning from a log: one policy, or the best of several."""
