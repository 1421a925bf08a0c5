"""The choice of a feature map by marginal likelihood."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.models.regression.feature_map import GROUPS, FeatureMap, new_map
from submax.models.regression.fitting import fitted
from submax.models.regression.posterior import FeatureRows
from submax.models.regression.prior import Prior, PriorStructure
from submax.models.regression.sampled_rows import RegressionRows
from submax.models.regression.sums import Sums

CHOOSING_ROWS = 1000
"""Kernel length and relevance are chosen from about this many rows at most, evenly spaced ones."""
LENGTHS = (0.35, 0.7, 1.4)
"""Kernel lengths to choose from, in units of the typical distance between two contexts."""
USUAL_LENGTH = 0.7
"""Kernel length if there are too few rows to choose."""
FEWEST_ROWS = 30
"""Smallest number of rows from which the kernel length is chosen."""
FIRST_STEPS, STEPS = 3, 1
"""Fixed-point steps of fitting the prior for each map that is tried: without and with a known prior
to start from."""
RELEVANCE_ROWS = 10.0
"""Strength of the shrinkage towards equal relevance. It counts as 10 rows for each context
variable."""
SENSITIVITY_ROWS = 400
"""The relevance is computed from this many of the latest rows, which bounds its cost."""


@dataclass(frozen=True)
class BeliefSettings:
    """Settings of a belief about K ``actions``.

    - ``features``: largest number of features.
    - ``rows``: number of rows from which the feature map is chosen, and size of the stored sample.
    - ``draws``: number of posterior draws that are stored.
    - ``width``: factor by which the deviation of these draws from the posterior mean is scaled.
    - ``discount``: factor by which the weight of a row is multiplied for every later row.
    - ``kernels``: whether there are kernel features beside the linear ones.
    - ``action_features [K, q]``: numbers that describe the actions, if there are any. Actions with
      similar numbers are expected to have similar coefficients.
    - ``shared``: whether the rewards of one action inform the belief about the others.
    """

    actions: int
    features: int
    rows: int
    draws: int
    width: float
    discount: float
    kernels: bool = True
    action_features: Floats | None = field(default=None, compare=False)
    shared: bool = True

    def prior_structure(self, groups: Integers) -> PriorStructure:
        """Return how the regressions of the actions are related, for features in these groups."""
        if self.shared:
            return PriorStructure.sharing(groups, self.actions, self.action_features)
        return PriorStructure.independent(groups, self.actions)


class FittedMap(NamedTuple):
    """A feature map, with the fitted prior and the coefficients of regressions on its features."""

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
    least_noise: float = 0.0,
) -> FittedMap | None:
    """Return the map with the highest marginal likelihood; None if all rewards are equal.

    Rewards that differ only by rounding count as equal. ``centre`` is subtracted from the rewards,
    and fitting starts from ``prior`` if it is given; the fitted noise variance is at least
    ``least_noise``. All kernel lengths are tried; then, for the
    best length, a relevance of each context variable.
    """
    first = new_map(rows.context, rows.weight, settings.features, rng, settings.kernels)
    rows = rows.taken(slice(None, None, math.ceil(len(rows.reward) / CHOOSING_ROWS)))
    choosing = len(first.landmarks) > 0 and len(rows.reward) >= FEWEST_ROWS
    lengths = LENGTHS if choosing else (USUAL_LENGTH,)
    found = [
        _fitted(first.of_length(length), rows, centre, prior, settings, least_noise)
        for length in lengths
    ]
    tried = [one for one in found if one is not None]
    if not tried:
        return None
    best = max(tried, key=lambda one: one.log_evidence)
    if not choosing:
        return best
    relevant = best.feature_map.with_relevance(_relevance(best, rows))
    another = _fitted(relevant, rows, centre, best.prior, settings, least_noise)
    if another is None or another.log_evidence <= best.log_evidence:
        return best
    return another


def sums_of(rows: RegressionRows, feature_map: FeatureMap, actions: int) -> Sums:
    """Return the sufficient statistics of the regressions, with rewards relative to their mean."""
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
    least_noise: float,
) -> FittedMap | None:
    features = feature_map.rows(rows.context)
    offset = float(np.average(rows.reward, weights=rows.weight))
    empty = Sums.empty(settings.actions, feature_map.width, offset)
    sums = empty.add(features, rows.number, rows.reward, rows.weight)
    if sums.variance == 0.0:
        return None
    described = settings.action_features is not None
    start = prior or Prior.vague(GROUPS, sums.variance, described)
    structure = settings.prior_structure(feature_map.groups)
    steps = FIRST_STEPS if prior is None else STEPS
    known = FeatureRows(features, rows.number, rows.weight)
    found = fitted(sums, structure, start, centre, steps, None, least_noise, known)
    return FittedMap(feature_map, found.prior, found.coefficients, found.log_evidence)


def _relevance(best: FittedMap, rows: RegressionRows) -> Floats:
    """Return the relevance of each context variable for distances; its mean square is 1.

    The squared relevance is the sensitivity of the regressions to the variable, shrunk towards
    equal relevance. The shrinkage decreases with the number of rows per context variable.

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
