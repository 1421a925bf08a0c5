"""When a rule applies."""

import msgspec

from submax.recommendation.answers import Answers, Choose, Goal, Rewards


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The smallest and the largest number that are allowed."""

    at_least: int = 0
    at_most: int | None = None

    def allow(self, number: int) -> bool:
        """Whether a number lies between the limits."""
        return self.at_least <= number and (self.at_most is None or number <= self.at_most)


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What answers must be; None allows every answer."""

    choose: Choose | tuple[Choose, ...] | None = None
    context: bool | None = None
    rewards: Rewards | tuple[Rewards, ...] | None = None
    goal: Goal | tuple[Goal, ...] | None = None
    actions: Limits = Limits()
    batch: Limits = Limits()

    def allows(self, answers: Answers) -> bool:
        """Whether the answers are as the condition asks."""
        return (
            _among(answers.choose, self.choose)
            and _among(answers.rewards, self.rewards)
            and _among(answers.goal, self.goal)
            and self.context in (None, answers.context)
            and self.actions.allow(answers.actions)
            and self.batch.allow(answers.batch)
        )


def _among(word: str, allowed: str | tuple[str, ...] | None) -> bool:
    if allowed is None:
        return True
    return word == allowed if isinstance(allowed, str) else word in allowed
