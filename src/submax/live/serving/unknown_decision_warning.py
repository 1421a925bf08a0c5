"""The warning for a reward whose decision is not known."""


class UnknownDecisionWarning(UserWarning):
    """A bandit in memory got a reward for an id that none of its decisions has."""

    @classmethod
    def about(cls, identifier: str) -> "UnknownDecisionWarning":
        """Return the warning for a reward with this id."""
        return cls(
            f"this bandit has no decision with the id {identifier!r:.80} or has forgotten it, so "
            "that the reward is not learned from unless such a decision follows: pass the id of a "
            "decision, as in bandit.reward(decision.id, 1.0)"
        )
