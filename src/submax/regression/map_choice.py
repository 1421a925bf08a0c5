"""The feature map under which the rows are most likely."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.regression.belief_settings import BeliefSettings
from submax.regression.feature_map import GROUPS, FeatureMap, new_map
from submax.regression.fitting import fitted
from submax.regression.prior import Prior
from submax.regression.sampled_rows import RegressionRows
from submax.regression.sums import Sums

LENGTHS = (0.35, 0.7, 1.4)
"""Kernel lengths to choose from, in units of the typical distance between two contexts."""
USUAL_LENGTH = 0.7
FEWEST_ROWS = 30
"""With fewer rows there is nothing to choose by: kernels have the usual length."""
STEPS = 3
"""Fixed-point steps by which the prior is fitted for each map that is tried."""
RELEVANCE_ROWS = 10.0
"""As if this many rows for each number of the context had shown all numbers equally relevant."""
SENSITIVITY_ROWS = 400
"""The relevance is computed from this many rows."""


class FittedMap(NamedTuple):
    """A feature map, and what is kept of the regressions on its features with a fitted prior."""

    feature_map: FeatureMap
    prior: Prior
    coefficients: Floats
    log_evidence: float


def best_map(
    rows: RegressionRows,
    centre: float,
    prior: Prior | None,
    settings: BeliefSettings,
    rng: np.random.Generator,
) -> FittedMap | None:
    """The map with the highest marginal likelihood; None if the rewards differ by rounding alone.

    Rewards are counted from ``centre``, and fitting starts at the ``prior`` if there is one. All
    kernel lengths are tried, and for the best one the relevance of each number of the context.
    """
    first = new_map(rows.context, rows.weight, settings.features, rng, settings.kernels)
    choosing = len(first.landmarks) > 0 and len(rows.reward) >= FEWEST_ROWS
    lengths = LENGTHS if choosing else (USUAL_LENGTH,)
    found = [_fitted(first.of_length(length), rows, centre, prior, settings) for length in lengths]
    tried = [one for one in found if one is not None]
    if not tried:
        return None
    best = max(tried, key=lambda one: one.log_evidence)
    if not choosing:
        return best
    relevant = best.feature_map.with_relevance(_relevance(best, rows))
    another = _fitted(relevant, rows, centre, best.prior, settings)
    if another is None or another.log_evidence <= best.log_evidence:
        return best
    return another


def sums_of(rows: RegressionRows, feature_map: FeatureMap, actions: int) -> Sums:
    """The sums over rows, counted from their mean reward."""
    offset = float(np.average(rows.reward, weights=rows.weight))
    sums = Sums.empty(actions, feature_map.width, offset)
    for piece in rows.pieces():
        features = feature_map.rows(piece.context)
        sums = sums.add(features, piece.number, piece.reward, piece.weight)
    return sums


def _fitted(
    feature_map: FeatureMap,
    rows: RegressionRows,
    centre: float,
    prior: Prior | None,
    settings: BeliefSettings,
) -> FittedMap | None:
    sums = sums_of(rows, feature_map, settings.actions)
    if sums.variance == 0.0:
        return None
    described = settings.action_features is not None
    start = prior or Prior.vague(GROUPS, sums.variance, described)
    design = settings.design(feature_map.groups)
    found = fitted(sums, design, start, centre, STEPS)
    return FittedMap(feature_map, found.prior, found.coefficients, found.log_evidence)


def _relevance(best: FittedMap, rows: RegressionRows) -> Floats:
    """How much each number of the context counts for distances, 1 on average.

    Its square is the sensitivity of the regressions to the number, drawn towards equal relevance
    the more, the fewer rows there are for each number.

    Reference: Radhakrishnan et al. (2024), Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, on average gradient outer products.
    """
    recent = rows.context[-SENSITIVITY_ROWS:]
    squared = best.feature_map.sensitivity(recent, best.coefficients)
    mean = squared.mean()
    if not mean > 0:
        return np.ones(len(squared))
    shrink = RELEVANCE_ROWS * len(squared) / len(rows.reward)
    relevance: Floats = np.sqrt((squared / mean + shrink) / (1 + shrink))
    return relevance
