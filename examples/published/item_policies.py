"""Thompson sampling and the upper confidence bound of Chapelle and Li (2011), by item."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax import Feedback, PolicyTraits, Problem, TabularPolicy
from submax.core.problem import ChosenActions
from submax.policies.thompson import largest_beta

Floats = NDArray[np.float64]


class ItemCounts(NamedTuple):
    """Pulls and successes at each place, ``[R, K]``, since its present item was first known.

    ``numbers [R, K]`` says which items these are; ``decisions [R, 1]`` counts all feedback.
    """

    problem: Problem
    numbers: Floats
    pulls: Floats
    successes: Floats
    decisions: Floats


class ItemPolicy(TabularPolicy[ItemCounts]):
    """Forgets an item when its place is taken by another one, which the context tells.

    Everything that a policy knows is brought up to date when feedback comes: rewards, the time, and
    which items are there. So all decisions of a batch are made as the first one is, and rewards of
    a batch are counted for the items that were there when it began. Feedback is one batch.
    """

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(forgets=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ItemCounts:
        zeros = np.zeros((replicas, problem.space.size))
        return ItemCounts(problem, zeros, zeros, zeros, np.zeros((replicas, 1)))

    def update(self, state: ItemCounts, feedback: Feedback, rng: np.random.Generator) -> ItemCounts:
        numbers = feedback.context[:, 0]
        same = numbers == state.numbers
        present = feedback.weight > 0
        taken = (np.arange(numbers.shape[1]) == feedback.action) & present[..., None]
        earned = feedback.weight * (feedback.reward * present)
        return ItemCounts(
            state.problem,
            numbers,
            state.pulls * same + np.einsum("rnk,rn->rk", taken, feedback.weight),
            state.successes * same + np.einsum("rnk,rn->rk", taken, earned),
            state.decisions + feedback.weight.sum(axis=1, keepdims=True),
        )


@dataclass(frozen=True)
class ItemThompson(ItemPolicy):
    """Algorithm 2 of the paper: the item with the largest draw from Beta(α + k, α + m − k).

    m is the number of pulls of an item, k the number of its successes, and α is ``prior``.
    """

    prior: float = 1.0

    def act(self, state: ItemCounts, context: Floats, rng: np.random.Generator) -> ChosenActions:
        pulls, successes = _known(state, context)
        shape = (*context.shape[:2], pulls.shape[1])
        won, lost = self.prior + successes, self.prior + pulls - successes
        drawn = rng.beta(won[:, None], lost[:, None], size=shape)
        return ChosenActions(drawn.argmax(axis=-1)[..., None], None)

    def probabilities(self, state: ItemCounts, context: Floats) -> Floats:
        pulls, successes = _known(state, context)
        return largest_beta(self.prior + successes, self.prior + pulls - successes)[:, None]


@dataclass(frozen=True)
class ItemUCB(ItemPolicy):
    """The item with the highest k/m + √(2 (k/m) ln(1/δ) / m) + 2 ln(1/δ) / m, where δ = √(1/t).

    m is the number of pulls of an item, k the number of its successes and t that of all
    decisions. An item that was never pulled is taken first.
    """

    def probabilities(self, state: ItemCounts, context: Floats) -> Floats:
        pulls, successes = _known(state, context)
        tried = np.maximum(pulls, 1.0)
        mean, width = successes / tried, 0.5 * np.log(state.decisions + 1) / tried
        bound = np.where(pulls > 0, mean + np.sqrt(2 * mean * width) + 2 * width, np.inf)
        return np.eye(pulls.shape[1])[bound.argmax(axis=-1)][:, None]


def _known(state: ItemCounts, context: Floats) -> tuple[Floats, Floats]:
    """Return pulls and successes of the items that are there when a batch begins, ``[R, K]``."""
    same = context[:, 0] == state.numbers
    return state.pulls * same, state.successes * same
