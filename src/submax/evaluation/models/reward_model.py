"""A model of the rewards of a log."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.processes import in_one_thread
from submax.evaluation.contracts.counts import mean, some
from submax.evaluation.logs.log import Log
from submax.evaluation.models.real_parts import polynomial_features
from submax.evaluation.models.reward_map import RewardMap, reward_maps
from submax.models.regression.bayesian import Prior, Sums, fitted

FOLDS = 3
"""Folds of the cross-fitting: each model learns from two thirds of the rows."""
MOST_FITTED = 300_000
"""The models are fitted to at most about this many rows: more would hardly change them."""
ROWS_PER_CHUNK = 1 << 14
"""Rows whose features are in memory together: 200 features of each take 26 MB."""
ROWS_PER_PREDICTION = 1 << 12
"""Rows that are predicted together: their features, about 4 MB, stay in the cache."""
STEPS = 3
"""Fixed-point steps by which each fold fits its prior, starting from that of the map."""


class RewardModel(NamedTuple):
    """q̂(x, a) = ``mean`` + (Σ_s ``slots``[s][a_s] + ``shared``) · f(x) + ``powers`` · g(a).

    f are the raw features of the ``reward_map``: whitening millions of rows would take half of the
    time of an evaluation, so that the coefficients contain the whitening. g are the powers of the
    real-valued parts of the action; each of ``slots`` is ``[choices, features]``. The scores of
    slots add up, so that the expected reward of a policy depends only on its probabilities within
    each slot.
    """

    reward_map: RewardMap
    mean: float
    slots: list[Floats]
    shared: Floats
    powers: Floats

    @in_one_thread
    def features(self, context: NDArray[np.float32]) -> Floats:
        """Return the scores of encoded contexts, ``[n, D] -> [n, 1 + choices of all slots]``.

        The first is the part of the reward that does not depend on the action; the others are what
        every choice of each slot adds to it.
        """
        coefficients = np.concatenate([self.shared[None], *self.slots]).T
        scores = np.empty((len(context), coefficients.shape[1]))
        for begin in range(0, len(context), ROWS_PER_PREDICTION):
            rows = slice(begin, begin + ROWS_PER_PREDICTION)
            raw = self.reward_map.feature_map.raw(context[rows].astype(np.float64))
            np.matmul(raw, coefficients, out=scores[rows])
        scores[:, 0] += self.mean
        return scores

    def expected(self, features: Floats, table: Floats, slot_tables: Sequence[Floats]) -> Floats:
        """Return Σ_a π(a | x) q̂(x, a), which depends only on probabilities within each slot."""
        found: Floats = features[:, 0].copy()
        for slot_table, first in zip(slot_tables, self._first_columns(), strict=True):
            scores = features[:, first : first + slot_table.shape[1]]
            found += np.einsum("nc,nc->n", slot_table, scores)
        return found

    def predict(self, features: Floats, action: NDArray[Any], powers: Floats) -> Floats:
        """Return q̂ for one action in each row; ``powers`` are those of its real-valued parts."""
        row = np.arange(len(features))
        found: Floats = features[:, 0] + powers @ self.powers
        for chosen, first in zip(action.T, self._first_columns(), strict=False):
            found += features[row, first + chosen.astype(np.int64)]
        return found

    def _first_columns(self) -> Integers:
        """Return the column of the first choice of each slot among the scores."""
        sizes = [len(one) for one in self.slots]
        return 1 + np.cumsum([0, *sizes])[:-1]


@in_one_thread
def fitted_models(log: Log) -> list[RewardModel]:
    """Return a Bayesian regression for each fold of ``folds_of``, fitted to the other folds.

    The kernel length, the prior variances and the noise are fitted to the same rows by marginal
    likelihood, so that a model never depends on the rewards that it predicts. If there are more
    than ``MOST_FITTED`` rows, the models are fitted to every second, third, … row.
    """
    fold = folds_of(log)
    maps = reward_maps(log, fold, FOLDS)
    sums = {one.feature_map.length: _sums(log, fold, one) for one in _different(maps)}
    models = []
    for number, reward_map in enumerate(maps):
        one, other = (
            each
            for place, each in enumerate(sums[reward_map.feature_map.length])
            if place != number
        )
        mean = _mean_of(log, fold != number)
        models.append(_fitted(one.joined(other), reward_map, mean))
    return models


def _different(maps: list[RewardMap]) -> Iterable[RewardMap]:
    """Return one map of each kernel length."""
    return {one.feature_map.length: one for one in maps}.values()


def _sums(log: Log, fold: NDArray[np.int8], reward_map: RewardMap) -> list[Sums]:
    """Return the sums over the rows of each fold, with rewards measured from the fold's mean."""
    design, step = reward_map.design, -(-len(log) // MOST_FITTED)
    sums = [design.nothing(_mean_of(log, fold == number)) for number in range(FOLDS)]
    first = 0
    for part in log.parts:
        for begin in range(0, len(part.reward), ROWS_PER_CHUNK):
            place = np.arange(begin, min(begin + ROWS_PER_CHUNK, len(part.reward)))
            place = place[(first + place) % step == 0]
            features = reward_map.features(part.context[place])
            action, reward = part.action[place], part.reward[place]
            powers = polynomial_features(log, action)
            count = np.ones(len(place)) if log.count is None else log.count[first + place]
            for number in range(FOLDS):
                mine = fold[first + place] == number
                sums[number] = design.added(
                    sums[number],
                    features[mine],
                    action[mine],
                    powers[mine],
                    reward[mine],
                    count[mine],
                )
        first += len(part.reward)
    return sums


def _fitted(sums: Sums, reward_map: RewardMap, mean: float) -> RewardModel:
    design = reward_map.design
    if sums.variance == 0.0:
        return RewardModel(reward_map, mean, *design.zero())
    start = reward_map.prior or Prior.vague(design.prior_groups, sums.variance)
    posterior = fitted(sums, design.design, start, mean, STEPS)
    found, to_raw = design.coefficients(posterior), reward_map.feature_map.for_raw
    slots = [to_raw(one) for one in found.slots]
    return RewardModel(reward_map, mean, slots, to_raw(found.shared), found.powers)


def folds_of(log: Log) -> NDArray[np.int8]:
    """Return the fold of each row of a log; all rows of a cluster are in the same fold."""
    if log.fold is not None:
        return log.fold
    if log.cluster is None:
        return fold_numbers(len(log))
    return fold_numbers(int(log.cluster.max()) + 1)[log.cluster]


def fold_numbers(count: int) -> NDArray[np.int8]:
    """Return the fold of each row, drawn at random because logs may take their actions in turn."""
    return np.random.default_rng(count).integers(FOLDS, size=count, dtype=np.int8)


def _mean_of(log: Log, which: Booleans) -> float:
    reward = log.reward[which]
    return mean(reward, some(log.count, which)) if reward.size else 0.0
