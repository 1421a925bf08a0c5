"""Double Thompson sampling, for duels."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import positive, whole_number
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored
from submax.policies.slates.duel_counts import DuelBounds, DuelCounts

NUMBERS_TOGETHER = 2**21
"""The most random numbers that are drawn at once, so that they take about 16 MB."""


@stored("double-thompson-state")
class DoubleThompsonState(NamedTuple):
    """The counted duels, and the share of draws that chose each pair, ``shares [R, K²]``."""

    problem: Problem
    counts: DuelCounts
    shares: Floats


@dataclass(frozen=True)
class DoubleThompson(ListingPolicy[DoubleThompsonState]):
    """Draw the first arm of a pair by Thompson sampling, and again the arm that it duels.

    The probability that i beats j has the posterior Beta(w_ij + 1, w_ji + 1), with w_ij the wins of
    i against j. The first arm beats the most others in a draw of all these probabilities; only arms
    with the largest number of upper confidence bounds above 1/2 are candidates. For
    the second arm, the probability that each arm beats the first one is drawn again, that of the
    first arm itself is 1/2, and the arm with the largest draw is taken, among arms whose lower
    bound against the first is at most 1/2. Bounds are w / n ± √(α ln t / n); t is the number of
    this duel, and α is ``exploration``. π(i, j) is the share of ``draws`` that chose the pair.

    Reference: Wu and Liu (2016), Double Thompson sampling for dueling bandits, algorithm 1, with
    α = 0.51.

    *Departs from the paper:* pairs are drawn at each update, and a decision takes one of them at
    random, so that its probability is known. If one decision follows each update, this is the
    paper's algorithm.
    """

    exploration: float = 0.51
    draws: int = 500

    def __post_init__(self) -> None:
        positive("exploration", self.exploration)
        whole_number("draws", self.draws, at_least=1)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False, needs_pairs=True)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> DoubleThompsonState:
        counts = DuelCounts.empty(problem, replicas, "double-thompson")
        return DoubleThompsonState(problem, counts, self._drawn_shares(counts, rng))

    def update(
        self, state: DoubleThompsonState, feedback: Feedback, rng: np.random.Generator
    ) -> DoubleThompsonState:
        counts = state.counts.add(feedback)
        fresh = (feedback.weight > 0).any(axis=1, keepdims=True)
        # Replicas without new duels keep their draws.
        shares = np.where(fresh, self._drawn_shares(counts, rng), state.shares)
        return DoubleThompsonState(state.problem, counts, shares)

    def probabilities(self, state: DoubleThompsonState, context: Floats) -> Floats:
        return state.shares[:, None]

    def for_single_decisions(self) -> Self:
        """Return the policy with one draw at each update: a single decision uses no other."""
        return replace(self, draws=1)

    def _drawn_shares(self, counts: DuelCounts, rng: np.random.Generator) -> Floats:
        replicas, arms, _ = counts.wins.shape
        bounds = counts.bounds(self.exploration)
        losses = counts.wins.transpose(0, 2, 1)
        ahead = np.asarray(
            1 - scipy.special.betainc(counts.wins + 1, losses + 1, 0.5), dtype=np.float64
        )
        together = max(1, NUMBERS_TOGETHER // (replicas * arms**2))
        shares = np.zeros((replicas, arms**2))
        for begin in range(0, self.draws, together):
            number = min(together, self.draws - begin)
            first = _first_arms(ahead, bounds, number, rng)
            second = _second_arms(counts.wins, bounds, first, rng)
            index = first * arms + second
            shares += tally(index, np.ones(index.shape), arms**2)
        return shares / self.draws


def _first_arms(
    ahead: Floats, bounds: DuelBounds, number: int, rng: np.random.Generator
) -> Integers:
    """Draw the first arm of some pairs, ``[R, number]``.

    ``ahead [R, K, K]`` is the posterior probability that i beats j in more than half of their
    duels. Only whether a drawn probability is above 1/2 matters, so that this is what is drawn.
    """
    replicas, arms, _ = ahead.shape
    upper = np.triu(np.ones((arms, arms), dtype=bool), 1)
    won = rng.random((replicas, number, arms, arms)) < ahead[:, None]
    beaten = (won & upper).sum(axis=3) + (~won & upper).sum(axis=2)
    possible = (bounds.upper > 0.5).sum(axis=2)
    candidate: Booleans = possible == possible.max(axis=1, keepdims=True)
    # Numbers of beaten arms are whole, so that a number below 1 decides between equal ones.
    score = np.where(candidate[:, None], beaten + rng.random(beaten.shape), -1.0)
    chosen: Integers = score.argmax(axis=2)
    return chosen


def _second_arms(
    wins: Floats, bounds: DuelBounds, first: Integers, rng: np.random.Generator
) -> Integers:
    """Draw the arms that duel the ``first [R, n]`` ones, ``[R, n]``."""
    replica = np.arange(len(wins))[:, None]
    # Each row belongs to a first arm, and has a number for every arm.
    won, lost = wins.transpose(0, 2, 1)[replica, first], wins[replica, first]
    # Quantiles of uniform numbers: other ways to draw would let replicas depend on each other.
    drawn = scipy.special.betaincinv(won + 1, lost + 1, rng.random(won.shape))
    arm = np.arange(wins.shape[1])
    drawn = np.where(arm == first[..., None], 0.5, drawn)
    uncertain = bounds.lower.transpose(0, 2, 1)[replica, first] <= 0.5
    chosen: Integers = np.where(uncertain, drawn, -1.0).argmax(axis=2)
    return chosen
