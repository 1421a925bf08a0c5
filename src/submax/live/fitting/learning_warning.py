"""Warn that a policy cannot learn."""


class LearningWarning(UserWarning):
    """A policy raised an error while it learned; the last version goes on deciding."""
