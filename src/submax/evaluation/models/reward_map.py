"""Chooses the features of a context on which a model of the rewards is fitted."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.evaluation.contracts.counts import mean
from submax.evaluation.logs.log import Log
from submax.evaluation.models.real_parts import POWERS, polynomial_features
from submax.evaluation.models.reward_design import RewardDesign
from submax.models.regression.bayesian import Prior, fitted
from submax.models.regression.context_belief import LENGTHS
from submax.models.regression.features import FeatureMap, new_map

KERNELS, FEWEST_KERNELS = 128, 8
"""Most landmarks of kernels, and fewest: fewer than 8 would add little to the linear part."""
ROWS_PER_KERNEL = 10
"""Rows of the log for each landmark: with fewer rows a landmark learns nothing and takes time."""
MOST_NUMBERS = 1 << 22
"""Numbers in the sums of arms that have regressions of their own: 32 MB for each fold."""
MOST_UNKNOWNS = 1500
"""With more unknowns in the regression of several slots, a choice has no slopes of its own."""
MOST_WITH_KERNELS = 600
"""Kernels are added while there are fewer unknowns than this: each fit inverts such a matrix."""
SAMPLE = 2000
"""Landmarks, scales, kernel length and first prior are chosen on at most this many rows."""
STEPS = 3
"""Fixed-point steps by which the prior is fitted for each kernel length."""


class RewardMap(NamedTuple):
    """The features of a context, the design of the regression on them, and its prior.

    The prior was fitted to a sample of the rows; it is None if all rewards of the sample are equal.
    """

    feature_map: FeatureMap
    design: RewardDesign
    prior: Prior | None

    def features(self, context: NDArray[np.float32]) -> Floats:
        """Return the features of encoded contexts: ``[n, D] -> [n, F]``."""
        return self.feature_map.rows(context.astype(np.float64))


class _Budget(NamedTuple):
    """The largest number of features, and whether to use kernels and interactions."""

    features: int
    kernels: bool
    interactions: bool

    @classmethod
    def of(cls, log: Log) -> "_Budget":
        menu, width = log.schema.menu, log.schema.context.width
        choices = sum(len(slot.choices) for slot in menu.slots)
        if len(menu.slots) == 1 and not menu.ranges:
            interactions, most = True, math.isqrt(MOST_NUMBERS // choices)
        else:
            interactions = (1 + choices) * (1 + width) <= MOST_UNKNOWNS
            blocks = 1 + choices if interactions else 1
            most = max(MOST_WITH_KERNELS // blocks, 1 + width)
        features = min(most, 1 + width + min(KERNELS, len(log) // ROWS_PER_KERNEL))
        # A map gives at most half of its features to the linear part if there are kernels.
        kernels = width > 0 and features >= 2 * width + FEWEST_KERNELS
        return cls(max(features, 2), kernels, interactions)


def reward_maps(log: Log, fold: NDArray[np.int8], folds: int) -> list[RewardMap]:
    """Return for each fold the map with the highest marginal likelihood on the other folds.

    Landmarks and scales are the same for all folds; the kernel length and the prior, which depend
    on rewards, may differ.
    """
    rng = np.random.default_rng(0)
    row: Integers = np.arange(len(log))
    if len(row) > SAMPLE:
        row = np.sort(rng.choice(len(row), SAMPLE, replace=False))
    context = log.schema.context.encode_rows(log.context[row]).astype(np.float64)
    budget = _Budget.of(log)
    weight = np.ones(len(row)) if log.count is None else log.count[row]
    first = new_map(context, weight, budget.features, rng, budget.kernels)
    lengths = LENGTHS if len(first.landmarks) else LENGTHS[-1:]
    best: list[tuple[float, RewardMap]] = []
    for length in lengths:
        feature_map = first.of_length(length)
        features = feature_map.rows(context)
        for number in range(folds):
            others = fold[row] != number
            found = _fitted_map(feature_map, budget, log, row[others], features[others])
            if len(best) <= number:
                best.append(found)
            elif found[0] > best[number][0]:
                best[number] = found
    return [one for _, one in best]


def _fitted_map(
    feature_map: FeatureMap, budget: _Budget, log: Log, row: Integers, features: Floats
) -> tuple[float, RewardMap]:
    """Return the log marginal likelihood of some rows, and a map with the prior fitted."""
    menu = log.schema.menu
    sizes = tuple(len(slot.choices) for slot in menu.slots)
    powers = POWERS * len(menu.ranges)
    design = RewardDesign(sizes, feature_map.groups, powers, budget.interactions)
    reward, action = log.reward[row], log.action[row]
    count = None if log.count is None else log.count[row]
    centre = mean(reward, count) if reward.size else 0.0
    nothing = design.nothing(centre)
    powers_of = polynomial_features(log, action)
    sums = design.added(nothing, features, action, powers_of, reward, count)
    if sums.variance == 0.0:
        return 0.0, RewardMap(feature_map, design, None)
    start = Prior.vague(design.prior_groups, sums.variance)
    posterior = fitted(sums, design.design, start, centre, STEPS)
    return posterior.log_evidence, RewardMap(feature_map, design, posterior.prior)
