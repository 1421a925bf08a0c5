"""A regression of rewards on contexts and actions of any kind: its inputs, its prior, its values.

A model has ``features(context)``, which are computed once, ``[n, D] -> [n, F]``;
``predict(features, action)``, q̂(x, a) for one action in each row; and ``expected(features, table,
marginals)``, Σ_a π(a | x) q̂(x, a) for a policy with the probabilities ``table`` of joint actions.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.numerics import pieces
from submax.models.regression.bayesian import Posterior, Prior, PriorStructure, Sums, fitted
from submax.models.regression.features import GROUPS, FeatureMap

POWERS = 3
"""A real-valued part, scaled to 0 … 1, has this many powers as features: a cubic polynomial."""
STEPS = 3
"""Fixed-point steps by which the prior is fitted for each kernel length."""
ROWS_PER_PREDICTION = 1 << 12
"""Rows that are predicted together: their features, about 4 MB, stay in the cache."""


class ActionCode(NamedTuple):
    """How models see actions: the choices of all slots, and powers of the real-valued parts.

    ``sizes`` are the numbers of choices of the slots. The real-valued parts have intervals that
    begin at ``low`` and have this ``width``.
    """

    sizes: tuple[int, ...]
    low: Floats
    width: Floats

    @property
    def first(self) -> Integers:
        """The place of the first choice of each slot among the choices of all slots, ``[S]``."""
        return np.cumsum((0, *self.sizes))[:-1]

    def places(self, action: NDArray[Any]) -> Integers:
        """Return the place of the choice of each slot, ``[n, S]``."""
        return self.first + action[:, : len(self.sizes)].astype(np.int64)

    def marginals(self, table: Floats) -> Floats:
        """Return probabilities of the choices of all slots, from those of joint actions."""
        if len(self.sizes) == 1:
            return table
        joint, slots = table.reshape(len(table), *self.sizes), range(1, len(self.sizes) + 1)
        others = [tuple(one for one in slots if one != slot) for slot in slots]
        return np.concatenate([joint.sum(axis=axes) for axes in others], axis=1)

    def powers(self, action: NDArray[Any]) -> Floats:
        """Return the powers of the real-valued parts, ``[n, POWERS · intervals]``."""
        scaled = (action[:, len(self.sizes) :].astype(np.float64) - self.low) / self.width
        return np.concatenate([scaled**power for power in range(1, POWERS + 1)], axis=1)

    def design(self, features: Floats, action: NDArray[Any], each: Floats | None = None) -> Floats:
        """Return features, those of ``each`` choice (1 if it is None) in every slot, and powers."""
        each = np.ones((len(features), 1)) if each is None else each
        chosen = np.zeros((len(features), sum(self.sizes)))
        np.put_along_axis(chosen, self.places(action), 1.0, axis=1)
        products = chosen[:, :, None] * each[:, None]
        return np.concatenate(
            [features, products.reshape(len(features), -1), self.powers(action)], axis=1
        )


class RewardMap(NamedTuple):
    """The design of a regression of rewards on contexts and actions, and its prior.

    Every plain arm has its own regression, with coefficients that are correlated between arms. The
    effects of several slots add up in one regression, in which every feature has a coefficient
    shared by all choices and one for each choice. Without ``interactions`` a choice has only a
    constant. Each slot has its own prior variances, and the powers of real-valued parts share one.
    The ``prior`` was fitted to a sample of the rows; it is None if all rewards there are equal.
    """

    feature_map: FeatureMap
    code: ActionCode
    interactions: bool
    prior: Prior | None = None

    @property
    def separate(self) -> bool:
        """Whether every choice has its own regression: plain arms without real-valued parts."""
        return len(self.code.sizes) == 1 and not len(self.code.low)

    @property
    def _each(self) -> int:
        """The number of coefficients of every choice, if there is one regression."""
        return len(self.feature_map.groups) if self.interactions else 1

    @property
    def structure(self) -> PriorStructure:
        """The prior correlations of the coefficients, and the group of each."""
        groups, sizes = self.feature_map.groups, self.code.sizes
        if self.separate:
            return PriorStructure.sharing(groups, sizes[0])
        of_slots = [
            np.tile(groups[: self._each] + GROUPS * (1 + slot), size)
            for slot, size in enumerate(sizes)
        ]
        of_powers = np.full(POWERS * len(self.code.low), GROUPS * (1 + len(sizes)))
        return PriorStructure.independent(np.concatenate([groups, *of_slots, of_powers]), 1)

    def posterior(self, sums: Sums, centre: float) -> Posterior:
        """Return the posterior for some rows, whose prior is fitted further to them."""
        groups = GROUPS * (1 + len(self.code.sizes)) + 1
        prior = self.prior or Prior.vague(groups, sums.variance)
        return fitted(sums, self.structure, prior, centre, STEPS)

    def rows(self, context: NDArray[np.float32], action: NDArray[Any]) -> tuple[Floats, Integers]:
        """Return the inputs of the regression for rows, ``[n, F]``, and the regression of each."""
        features = self.feature_map.rows(context.astype(np.float64))
        if self.separate:
            return features, action[:, 0].astype(np.int64)
        inputs = self.code.design(features, action, features[:, : self._each])
        return inputs, np.zeros(len(action), np.int64)

    def model(self, sums: Sums, centre: float) -> "RewardModel":
        """Return the model that is fitted to some rows."""
        width, choices = len(self.feature_map.groups), sum(self.code.sizes)
        table, powers = np.zeros((1 + choices, width)), np.zeros(POWERS * len(self.code.low))
        if sums.variance > 0:
            coefficients = self.posterior(sums, centre).coefficients
            if self.separate:
                table[1:] = coefficients
            else:
                ends = width, width + choices * self._each
                table[0], each, powers = np.split(coefficients[0], ends)
                table[1:, : self._each] = each.reshape(choices, self._each)
        raw = self.feature_map.for_raw(table).T
        return RewardModel(self.feature_map, self.code, centre, raw, powers)


class RewardModel(NamedTuple):
    """q̂(x, a) = ``mean`` + θ_0 · f(x) + Σ_s θ_{a_s} · f(x) + ``powers`` · g(a).

    f are the raw features of the ``feature_map``: whitening millions of rows would take half of the
    time of an evaluation, so the ``coefficients [F, 1 + choices]`` contain the whitening. The first
    column is θ_0, and the others are those of the choices of all slots. g are the powers of the
    real-valued parts of the action. The scores of slots add up, so the expected reward of a policy
    depends only on its probabilities within each slot.
    """

    feature_map: FeatureMap
    code: ActionCode
    mean: float
    coefficients: Floats
    powers: Floats

    def features(self, context: NDArray[np.float32]) -> Floats:
        """Return the scores of encoded contexts, ``[n, D] -> [n, 1 + choices of all slots]``.

        The first is the part of the reward that does not depend on the action; the others are what
        every choice of each slot adds to it.
        """
        scores = np.empty((len(context), self.coefficients.shape[1]))
        for rows in pieces(len(context), ROWS_PER_PREDICTION):
            raw = self.feature_map.raw(context[rows].astype(np.float64))
            np.matmul(raw, self.coefficients, out=scores[rows])
        scores[:, 0] += self.mean
        return scores

    def predict(self, features: Floats, action: NDArray[Any]) -> Floats:
        scores = np.take_along_axis(features, 1 + self.code.places(action), axis=1)
        found: Floats = features[:, 0] + scores.sum(axis=1)
        return found + self.code.powers(action) @ self.powers

    def expected(self, features: Floats, table: Floats, marginals: Floats) -> Floats:
        found: Floats = features[:, 0] + np.einsum("nc,nc->n", marginals, features[:, 1:])
        return found
