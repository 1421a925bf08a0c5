"""Feedback that its maker has checked."""

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem


class CheckedFeedback(Feedback):
    """Feedback whose actions and rewards its maker checks, so that policies need not.

    A simulation checks the actions and rewards of many decisions at once, which takes much less
    time than to check every single decision.
    """

    __slots__ = ()

    def check(self, problem: Problem) -> None:
        """Do nothing: the maker checks these rows."""
