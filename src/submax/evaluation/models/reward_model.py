"""A model of the rewards of a log."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.evaluation.logs.log import Log
from submax.evaluation.models.real_parts import powers_of
from submax.evaluation.models.reward_map import RewardMap, reward_maps
from submax.regression.fitting import fitted
from submax.regression.prior import Prior
from submax.regression.sums import Sums

FOLDS = 3
MOST_FITTED = 300_000
"""The models are fitted to about this many rows."""
ROWS_AT_ONCE = 1 << 14
"""Rows are turned into features this many at a time."""
STEPS = 3
"""Fixed-point steps by which each fold fits its prior, from that of the map."""


class RewardModel(NamedTuple):
    """q̂(x, a) = ``mean`` + (Σ_s ``slots``[s][a_s] + ``shared``) · f(x) + powers of real parts.

    f are the features of the ``reward_map``, ``slots`` ``[choices, features]`` each; a slot's
    scores add up, so that what a policy is expected to earn needs only its probabilities within
    each slot.
    """

    reward_map: RewardMap
    mean: float
    slots: list[Floats]
    shared: Floats
    powers: Floats

    def features(self, context: NDArray[np.float32]) -> Floats:
        """The features f of encoded contexts, ``[n, D] -> [n, features]``."""
        return self.reward_map.features(context)

    def scores(self, features: Floats) -> list[Floats]:
        """What every choice of each slot adds, ``[n, choices]``."""
        return [features @ theta.T for theta in self.slots]

    def base(self, features: Floats) -> Floats:
        """What does not depend on the choices, ``[n]``."""
        found: Floats = self.mean + features @ self.shared
        return found

    def predict(self, features: Floats, action: NDArray[Any], powers: Floats) -> Floats:
        """q̂ of one action in each row; ``powers`` are those of its real-valued parts."""
        row = np.arange(len(features))
        found = self.base(features) + powers @ self.powers
        for score, chosen in zip(self.scores(features), action.T, strict=False):
            found += score[row, chosen.astype(np.int64)]
        return found


def fitted_models(log: Log) -> list[RewardModel]:
    """Bayesian regressions, one for each fold of ``fold_numbers``, from the rows of the others.

    The kernel length, the prior variances and the noise are fitted by marginal likelihood to the
    same rows, so that a model knows nothing of the rewards that it predicts. Of very many rows
    every second, third and so on is taken.
    """
    fold = fold_numbers(len(log))
    maps = reward_maps(log, fold, FOLDS)
    sums = {one.feature_map.length: _sums(log, fold, one) for one in _different(maps)}
    models = []
    for number, reward_map in enumerate(maps):
        one, other = (
            each
            for place, each in enumerate(sums[reward_map.feature_map.length])
            if place != number
        )
        mean = _mean_of(log.reward[fold != number])
        models.append(_fitted(one.joined(other), reward_map, mean))
    return models


def _different(maps: list[RewardMap]) -> Iterable[RewardMap]:
    """One map of each kernel length."""
    return {one.feature_map.length: one for one in maps}.values()


def _sums(log: Log, fold: NDArray[np.int8], reward_map: RewardMap) -> list[Sums]:
    """The sums over the rows of each fold, each counted from the mean of its own rewards."""
    design, step = reward_map.design, -(-len(log) // MOST_FITTED)
    sums = [design.nothing(_mean_of(log.reward[fold == number])) for number in range(FOLDS)]
    first = 0
    for part in log.parts:
        for begin in range(0, len(part.reward), ROWS_AT_ONCE):
            place = np.arange(begin, min(begin + ROWS_AT_ONCE, len(part.reward)))
            place = place[(first + place) % step == 0]
            features = reward_map.features(part.context[place])
            action, reward = part.action[place], part.reward[place]
            powers = powers_of(log, action)
            for number in range(FOLDS):
                mine = fold[first + place] == number
                sums[number] = design.added(
                    sums[number], features[mine], action[mine], powers[mine], reward[mine]
                )
        first += len(part.reward)
    return sums


def _fitted(sums: Sums, reward_map: RewardMap, mean: float) -> RewardModel:
    design = reward_map.design
    if sums.variance == 0.0:
        return RewardModel(reward_map, mean, *design.zero())
    start = reward_map.prior or Prior.vague(design.prior_groups, sums.variance)
    posterior = fitted(sums, design.design, start, mean, STEPS)
    return RewardModel(reward_map, mean, *design.coefficients(posterior))


def fold_numbers(count: int) -> NDArray[np.int8]:
    """The fold of each row, at random: logs may take their actions by turns."""
    return np.random.default_rng(count).integers(FOLDS, size=count, dtype=np.int8)


def _mean_of(reward: Floats) -> float:
    return float(reward.mean()) if reward.size else 0.0
