"""Relative upper confidence bounds, for duels."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.checks import positive
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored
from submax.policies.slates.duel_counts import DuelCounts


@stored("relative-ucb-state")
class RelativeUCBState(NamedTuple):
    """The counted duels, and which arm is believed to be the best, if any, ``best [R, K]``."""

    problem: Problem
    counts: DuelCounts
    best: Booleans


@dataclass(frozen=True)
class RelativeUCB(ListingPolicy[RelativeUCBState]):
    """Duel an arm that may beat all others with the arm that may beat it most often.

    U_ij is the upper confidence bound w_ij / n_ij + √(α ln t / n_ij) of the probability that i
    beats j; w_ij are the wins, n_ij the duels of both arms, t is the number of this duel, and α is
    ``exploration``. The candidates C are the arms with U_ij ≥ 1/2 for all j. If only one is left,
    it is believed to be the best as long as it stays a candidate. The first arm of the pair
    is the one believed to be the best with probability 1/2, else a random other candidate; without
    such an arm, a random candidate; without candidates, any arm. The second arm j has the
    highest U_ji against the first arm i; it is i itself only if no other arm has a bound of
    1/2 or more.

    Reference: Zoghi et al. (2014), Relative upper confidence bound for the K-armed dueling bandit
    problem, algorithm 1, with α = 0.51.
    """

    exploration: float = 0.51

    def __post_init__(self) -> None:
        positive("exploration", self.exploration)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False, needs_pairs=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> RelativeUCBState:
        counts = DuelCounts.empty(problem, replicas, "relative-ucb")
        nobody = np.zeros(counts.wins.shape[:2], dtype=np.bool_)
        return self._with_candidates(counts, nobody)

    def update(
        self, state: RelativeUCBState, feedback: Feedback, rng: np.random.Generator
    ) -> RelativeUCBState:
        return self._with_candidates(state.counts.add(feedback), state.best)

    def probabilities(self, state: RelativeUCBState, context: Floats) -> Floats:
        upper = state.counts.bounds(self.exploration).upper
        pairs = _first_arm(upper, state.best)[:, :, None] * _second_arm(upper)
        return pairs.reshape(len(pairs), 1, -1)

    def _with_candidates(self, counts: DuelCounts, best: Booleans) -> RelativeUCBState:
        """Return the state in which the best arm is the only candidate, or still a candidate."""
        candidates = _candidates(counts.bounds(self.exploration).upper)
        alone = candidates.sum(axis=1, keepdims=True) == 1
        return RelativeUCBState(
            counts.problem, counts, np.where(alone, candidates, best & candidates)
        )


def _candidates(upper: Floats) -> Booleans:
    """Return which arms may beat all others, ``[R, K]``."""
    found: Booleans = np.all(upper >= 0.5, axis=2)
    return found


def _first_arm(upper: Floats, best: Booleans) -> Floats:
    """Return the probability that each arm is the first of the pair, ``[R, K]``."""
    candidates = _candidates(upper)
    allowed = np.where(candidates.any(axis=1, keepdims=True), candidates, True)
    others = allowed & ~best
    number = others.sum(axis=1, keepdims=True)
    known = best.any(axis=1, keepdims=True)
    share = np.where(known, 0.5, 1.0) / np.maximum(number, 1)
    # The best arm is alone if there is no other candidate.
    return np.where(best, np.where(number > 0, 0.5, 1.0), np.where(others, share, 0.0))


def _second_arm(upper: Floats) -> Floats:
    """Return the probability of each second arm given the first arm, ``[R, K, K]``."""
    # Row i has the bounds of all arms against arm i.
    against = upper.transpose(0, 2, 1)
    highest = against == against.max(axis=2, keepdims=True)
    itself = np.eye(upper.shape[1], dtype=bool)
    rivals = highest & ~itself
    chosen = np.where(rivals.any(axis=2, keepdims=True), rivals, highest)
    shares: Floats = chosen / chosen.sum(axis=2, keepdims=True)
    return shares
