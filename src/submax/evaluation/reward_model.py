"""A model of the rewards of a log."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.evaluation.log import Log
from submax.evaluation.reward_features import RewardFeatures
from submax.evaluation.ridge_design import RidgeDesign

FOLDS = 3
POWERS = 3
"""Of each real-valued part, scaled to 0 … 1."""
MOST_FITTED = 300_000
"""The models are fitted to about so many rows."""


class RewardModel(NamedTuple):
    """q̂(x, a) = ``mean`` + (Σ_s ``slots``[s][a_s] + ``shared``) · f(x) + powers of real parts.

    f are the ``RewardFeatures``, ``slots`` ``[choices, features]`` each; a slot's scores add up, so
    that what a policy is expected to earn needs only its probabilities within each slot.
    """

    mean: float
    slots: list[Floats]
    shared: Floats
    powers: Floats

    def scores(self, features: Floats) -> list[Floats]:
        """What every choice of each slot adds, ``[n, choices]``."""
        return [features @ theta.T for theta in self.slots]

    def base(self, features: Floats) -> Floats:
        """What does not depend on the choices, ``[n]``."""
        found: Floats = self.mean + features @ self.shared
        return found

    def predict(self, features: Floats, action: NDArray[Any], scaled: Floats) -> Floats:
        """q̂ of one action in each row; ``scaled`` are its real-valued parts from 0 to 1."""
        row = np.arange(len(features))
        found = self.base(features) + _powers(scaled) @ self.powers
        for score, chosen in zip(self.scores(features), action.T, strict=False):
            found += score[row, chosen.astype(np.int64)]
        return found


def fitted_models(log: Log, features: RewardFeatures) -> list[RewardModel]:
    """By ridge regression, one for each fold of ``fold_numbers``, from the rows of the others.

    Of very many rows every so many are taken.
    """
    menu = log.schema.menu
    sizes = tuple(len(slot.choices) for slot in menu.slots)
    design = RidgeDesign(sizes, features.width, POWERS * len(menu.intervals))
    step = -(-len(log) // MOST_FITTED)
    sums = [design.nothing() for _ in range(FOLDS)]
    first, fold = 0, fold_numbers(len(log))
    for part in log.parts:
        place = np.arange(first, first + len(part.reward))
        for number in range(FOLDS):
            mine = (fold[place] == number) & (place % step == 0)
            seen, action = features.rows(part.context[mine]), part.action[mine]
            powers = _powers(real_parts(log, action))
            sums[number] += design.sums(seen, action, powers, part.reward[mine])
        first += len(part.reward)
    models = []
    for number, mine in enumerate(sums):
        others = sum((one for one in sums if one is not mine), design.nothing())
        mean = _mean_of(log.reward[fold != number])
        models.append(RewardModel(mean, *design.solved(others, mean)))
    return models


def fold_numbers(count: int) -> NDArray[np.int8]:
    """The fold of each row, at random: logs may take their actions by turns."""
    return np.random.default_rng(count).integers(FOLDS, size=count, dtype=np.int8)


def _mean_of(reward: Floats) -> float:
    return float(reward.mean()) if reward.size else 0.0


def real_parts(log: Log, action: NDArray[Any]) -> Floats:
    """The real-valued parts of actions, from 0 to 1."""
    intervals = log.schema.menu.intervals
    low = np.array([one.low for one in intervals])
    width = np.array([one.high - one.low for one in intervals])
    first = len(log.schema.menu.slots)
    scaled: Floats = (action[:, first:].astype(np.float64) - low) / width
    return scaled


def _powers(scaled: Floats) -> Floats:
    return np.concatenate([scaled**power for power in range(1, POWERS + 1)], axis=1)
