"""Warn that rewards come too late to be learned from."""

from submax.live.declaring.settings import Settings


class LateRewardWarning(UserWarning):
    """Many rewards come after their decisions were learned from without them."""


class LateRewards:
    """Counts late rewards, and says when a warning is due.

    A warning is due at the 1st, 10th, 100th, … late reward, if at least one reward in ten was late.
    """

    def __init__(self) -> None:
        self.rewards, self.late = 0, 0
        self._next, self._due = 1, False

    def count(self, late: bool) -> None:
        """Count a reward that was not stored before."""
        self.rewards += 1
        self.late += late
        if late and self.late >= self._next:
            self._next = 10 * self._next
            self._due = 10 * self.late >= self.rewards

    def sentence(self, settings: Settings) -> str | None:
        """The text of a warning that is due; None if none is due."""
        if not self._due:
            return None
        self._due = False
        word = "reward_wait" if settings.reward_wait > 0 else "no_reward_after"
        default = settings.default_reward
        instead = "not learned from" if default is None else f"learned from as {default:g}"
        return (
            f"{self.late} of {self.rewards} rewards came later than {word} = "
            f"{settings.longest_wait:g} seconds after their decisions, which were {instead}; a "
            f"reward that late is stored and not learned: declare a bandit with a longer {word}, "
            "or with reward_wait=0, to learn when the reward comes"
        )
