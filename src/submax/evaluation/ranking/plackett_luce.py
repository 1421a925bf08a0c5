"""A ranking policy that draws items without replacement, by their scores."""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.ranking.ranking_policy import RankingPolicy
from submax.evaluation.ranking.slates import EMPTY

MOST_SETS = 5000
"""Sets of items above a position over which marginal probabilities are added up; more take long."""


@dataclass(frozen=True, eq=False)
class PlackettLuce(RankingPolicy):
    """p(a at k | above) = exp(s_a) / Σ exp(s_b) over the items b that are not above.

    s are the ``scores [M]``, or ``[n, M]`` with scores for each slate. Equal scores are uniformly
    random rankings; the larger the differences, the nearer to sorting by score.

    Reference: Plackett (1975), The analysis of permutations.
    """

    scores: Floats

    def __post_init__(self) -> None:
        scores = np.atleast_2d(np.asarray(self.scores, dtype=np.float64))
        if scores.ndim != 2 or not np.isfinite(scores).all() or not scores.size:
            raise InputError(
                f"the scores have the shape {scores.shape}; finite numbers [items] or "
                "[slates, items] are allowed: give a score for each item",
                parameter="scores",
            )
        object.__setattr__(self, "scores", scores)

    @property
    def _strength(self) -> Floats:
        strength: Floats = np.exp(self.scores - self.scores.max(axis=1, keepdims=True))
        return strength

    def conditional(self, item: Integers) -> Floats:
        slates, positions = item.shape
        left = np.broadcast_to(self._strength, (slates, self.scores.shape[1])).copy()
        found = np.zeros((slates, positions, left.shape[1]))
        row = np.arange(slates)
        for position in range(positions):
            total = left.sum(axis=1, keepdims=True)
            np.divide(left, total, out=found[:, position], where=total > 0)
            present = item[:, position] != EMPTY
            left[row[present], item[present, position]] = 0.0
        return found

    def marginal(self, slates: int, positions: int) -> Floats | None:
        strength = self._strength
        count = strength.shape[1]
        sizes = range(min(positions, count))
        if sum(math.comb(count, size) for size in sizes) > MOST_SETS:
            return None
        found = np.zeros((len(strength), positions, count))
        # The probability that the items above a position are this set.
        above: dict[tuple[int, ...], Floats] = {(): np.ones(len(strength))}
        for position in sizes:
            below: dict[tuple[int, ...], Floats] = {}
            for chosen in combinations(range(count), position):
                rest = [item for item in range(count) if item not in chosen]
                share = above[chosen][:, None] * strength[:, rest]
                share /= strength[:, rest].sum(axis=1, keepdims=True)
                found[:, position, rest] += share
                for item, probability in zip(rest, share.T, strict=True):
                    key = tuple(sorted((*chosen, item)))
                    below[key] = below.get(key, np.zeros(len(strength))) + probability
            above = below
        return found
