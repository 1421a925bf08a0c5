"""The answers to the five questions by which a policy is recommended."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, get_args

from submax.core.checks import as_whole_number, one_of
from submax.core.errors import InputError

Choose = Literal["arms", "slots", "number"]
Rewards = Literal["often", "seldom", "rare", "ratings", "numbers", "counts", "sparse-counts"]
Goal = Literal["earn", "adapt", "explain", "identify"]
REWARDS: tuple[str, ...] = get_args(Rewards)
GOALS: tuple[str, ...] = get_args(Goal)
NUMBER = "number"
"""The answer to the first question if the action is a number, such as a price."""
OFTEN, SELDOM = 0.2, 0.03
"""Rewards 0 and 1 come often if their mean is at least 0.2, seldom if it is at least 0.03, and are
rare otherwise. The published runs have means of about 0.5, 0.1 and 0.01: the limits lie between
them on a logarithmic scale."""
SPARSE = 0.5
"""Mean below which counts are sparse. The published runs have the means 2 and 0.1."""


@dataclass(frozen=True)
class Answers:
    """What is known about a problem.

    ``sizes`` has the number of arms, or of choices in each slot; it is empty if a number is chosen.
    ``batch`` is how many decisions are made before their rewards are learned from.

    >>> Answers.of("2x3", context=True, rewards="rare")
    Answers(sizes=(2, 3), context=True, rewards='rare', batch=100, goal='earn')
    """

    sizes: tuple[int, ...]
    context: bool
    rewards: str
    batch: int = 100
    goal: str = "earn"

    @classmethod
    def of(
        cls,
        actions: int | str | Sequence[int],
        *,
        context: bool = False,
        rewards: str,
        batch: int = 100,
        goal: str = "earn",
    ) -> Self:
        """Check the answers; ``actions`` is 20, "2x4x8", [2, 4, 8] or "number"."""
        one_of("rewards", rewards, REWARDS)
        one_of("goal", goal, GOALS)
        steps = as_whole_number("batch", batch, at_least=1)
        return cls(sizes_of(actions), bool(context), rewards, steps, goal)

    @property
    def choose(self) -> Choose:
        """What is chosen: one of several arms, several choices together, or a number."""
        if not self.sizes:
            return "number"
        return "arms" if len(self.sizes) == 1 else "slots"

    @property
    def actions(self) -> int:
        """How many arms, or joint actions of all slots; 0 if a number is chosen."""
        return math.prod(self.sizes) if self.sizes else 0

    @property
    def sentence(self) -> str:
        """The answers in words."""
        what = {
            "arms": f"{self.actions} arms",
            "slots": f"{len(self.sizes)} slots with {self.actions} joint actions",
            "number": "a number",
        }[self.choose]
        known = "a context" if self.context else "no context"
        return (
            f"{what}, {known}, rewards: {self.rewards}, batches of {self.batch}, goal: {self.goal}"
        )


def sizes_of(actions: int | str | Sequence[int]) -> tuple[int, ...]:
    """Return the number of arms or of choices in each slot; nothing for "number".

    >>> sizes_of("20"), sizes_of("2x4"), sizes_of([3, 3]), sizes_of("number")
    ((20,), (2, 4), (3, 3), ())
    """
    if actions == NUMBER:
        return ()
    given = actions.split("x") if isinstance(actions, str) else actions
    if isinstance(given, int):
        given = [given]
    try:
        sizes = [int(one) for one in given]
    except (TypeError, ValueError):
        sizes = []
    if not sizes or min(sizes) < 1 or math.prod(sizes) < 2:
        raise InputError(
            f"actions was given as {actions!r:.60}; allowed are a number of arms from 2 on, the "
            "sizes of slots such as 2x4x8, and the word number for a price: give one of these",
            code="invalid-actions",
        )
    return tuple(sizes)


def binary_word(mean: float) -> Rewards:
    """Return how often rewards 0 and 1 with this mean come.

    >>> [binary_word(mean) for mean in (0.5, 0.1, 0.01)]
    ['often', 'seldom', 'rare']
    """
    return "often" if mean >= OFTEN else "seldom" if mean >= SELDOM else "rare"


def count_word(mean: float) -> Rewards:
    """Return whether counts with this mean are usually above zero."""
    return "counts" if mean >= SPARSE else "sparse-counts"
