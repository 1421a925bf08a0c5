"""Models of the rewards of a log: our own regression, or a supervised model of another library.

A model of one fold has ``features(context)``, which it computes once, ``[n, D] -> [n, F]``;
``predict(features, action)``, q̂(x, a) for one action in each row; and ``expected(features, table,
marginals)``, Σ_a π(a | x) q̂(x, a) for a policy with the probabilities ``table`` of joint actions.
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.core.numerics import pieces
from submax.evaluation.log import Log
from submax.models.classifiers import FittedRegressor, class_by_name, fitted_regressor, made
from submax.models.regression.bayesian import Posterior, Prior, PriorStructure, Sums, fitted
from submax.models.regression.blas import in_one_thread
from submax.models.regression.context_belief import LENGTHS
from submax.models.regression.features import GROUPS, FeatureMap, new_map
from submax.schema.actions import ActionSpec
from submax.statistics.sums import mean

FOLDS = 3
"""Folds of the cross-fitting: each model learns from two thirds of the rows."""
POWERS = 3
"""A real-valued part, scaled to 0 … 1, has this many powers as features: a cubic polynomial."""


class ActionCode(NamedTuple):
    """How models see actions: the choices of all slots, and powers of the real-valued parts.

    ``sizes`` are the numbers of choices of the slots. The real-valued parts have intervals that
    begin at ``low`` and have this ``width``.
    """

    sizes: tuple[int, ...]
    low: Floats
    width: Floats

    @classmethod
    def of(cls, menu: ActionSpec) -> "ActionCode":
        low = np.array([one.low for one in menu.ranges])
        high = np.array([one.high for one in menu.ranges])
        return cls(tuple(len(slot.choices) for slot in menu.slots), low, high - low)

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


def folds_of(log: Log) -> NDArray[np.int8]:
    """Return the fold of each row of a log; all rows of a cluster are in the same fold.

    Folds are drawn at random because logs may take their actions in turn.
    """
    if log.fold is not None:
        return log.fold
    units = len(log) if log.cluster is None else int(log.cluster.max()) + 1
    fold = np.random.default_rng(units).integers(FOLDS, size=units, dtype=np.int8)
    return fold if log.cluster is None else fold[log.cluster]


# The Bayesian regression --------------------------------------------------------------------------

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
MOST_FITTED = 150_000
"""The models are fitted to at most about this many rows: more would hardly change them."""
NUMBERS_PER_CHUNK = 1 << 21
"""Numbers of the design of the regression that are in memory together: 16 MB."""
ROWS_PER_PREDICTION = 1 << 12
"""Rows that are predicted together: their features, about 4 MB, stay in the cache."""


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

    def features(self, context: NDArray[np.float32]) -> Floats:
        """Return the features of encoded contexts: ``[n, D] -> [n, F]``."""
        return self.feature_map.rows(context.astype(np.float64))

    def sums(self, log: Log) -> list[Sums]:
        """Return the sums over the rows of each fold; rewards are measured from its mean."""
        structure, fold = self.structure, folds_of(log)
        shape = len(structure.directions), len(structure.groups)
        sums = [Sums.empty(*shape, _mean_of(log, fold == number)) for number in range(FOLDS)]
        for rows in pieces(len(log), max(NUMBERS_PER_CHUNK // shape[1], 1)):
            action, reward = log.action[rows], log.reward[rows]
            inputs = self.features(log.schema.context.encode_rows(log.context[rows]))
            regression = np.zeros(len(reward), np.int64)
            if self.separate:
                regression = action[:, 0].astype(np.int64)
            else:
                inputs = self.code.design(inputs, action, inputs[:, : self._each])
            for number in range(FOLDS):
                mine = fold[rows] == number
                columns = inputs, regression, reward, log.counts[rows]
                sums[number] = sums[number].add(*(column[mine] for column in columns))
        return sums

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


def reward_maps(log: Log) -> list[RewardMap]:
    """Return for each fold the map with the highest marginal likelihood on the other folds.

    Landmarks and scales are the same for all folds; the kernel length and the prior, which depend
    on rewards, may differ.
    """
    rng, menu, width = np.random.default_rng(0), log.schema.menu, log.schema.context.width
    choices = sum(len(slot.choices) for slot in menu.slots)
    if len(menu.slots) == 1 and not menu.ranges:
        interactions, most = True, math.isqrt(MOST_NUMBERS // choices)
    else:
        interactions = (1 + choices) * (1 + width) <= MOST_UNKNOWNS
        blocks = 1 + choices if interactions else 1
        most = max(MOST_WITH_KERNELS // blocks, 1 + width)
    size = min(most, 1 + width + min(KERNELS, len(log) // ROWS_PER_KERNEL))
    # A map gives at most half of its features to the linear part if there are kernels.
    kernels = width > 0 and size >= 2 * width + FEWEST_KERNELS
    if len(log) > SAMPLE:
        log = log.rows(np.sort(rng.choice(len(log), SAMPLE, replace=False)))
    context = log.schema.context.encode_rows(log.context).astype(np.float64)
    first, fold = new_map(context, log.counts, max(size, 2), rng, kernels), folds_of(log)
    best: dict[int, tuple[float, RewardMap]] = {}
    for length in LENGTHS if len(first.landmarks) else LENGTHS[-1:]:
        reward_map = RewardMap(first.of_length(length), ActionCode.of(menu), interactions)
        of_folds = reward_map.sums(log)
        for number in range(FOLDS):
            sums, evidence, prior = _of_others(of_folds, number), 0.0, None
            if sums.variance > 0:
                posterior = reward_map.posterior(sums, _mean_of(log, fold != number))
                evidence, prior = posterior.log_evidence, posterior.prior
            if number not in best or evidence > best[number][0]:
                best[number] = evidence, reward_map._replace(prior=prior)
    return [best[number][1] for number in range(FOLDS)]


def _of_others(sums: Sequence[Sums], number: int) -> Sums:
    """Return the sums over all folds but one."""
    return reduce(Sums.joined, [one for place, one in enumerate(sums) if place != number])


def _mean_of(log: Log, which: Booleans) -> float:
    return mean(log.reward[which], log.counts[which]) if which.any() else 0.0


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


@in_one_thread
def fitted_models(log: Log) -> list[RewardModel]:
    """Return a Bayesian regression for each fold of ``folds_of``, fitted to the other folds.

    The kernel length, the prior variances and the noise are fitted to the same rows by marginal
    likelihood, so a model never depends on the rewards that it predicts. If there are more
    than ``MOST_FITTED`` rows, the models are fitted to every second, third, … row.
    """
    fold = folds_of(log)
    log = replace(log, fold=fold)
    maps, used = reward_maps(log), every_so_many(log, MOST_FITTED)
    # One map of each kernel length is enough.
    by_length = {fitted_map.feature_map.length: fitted_map for fitted_map in maps}
    sums = {length: fitted_map.sums(used) for length, fitted_map in by_length.items()}
    return [
        fitted_map.model(
            _of_others(sums[fitted_map.feature_map.length], number),
            _mean_of(log, fold != number),
        )
        for number, fitted_map in enumerate(maps)
    ]


def every_so_many(log: Log, most: int) -> Log:
    """Return a log of every second, third, … row if it has more than ``most`` rows."""
    return log.rows(slice(None, None, -(-len(log) // most)))


# Supervised models of other libraries -------------------------------------------------------------

MOST_CLASSES = 20
"""A classifier models rewards only if at most this many different ones occur."""
EXAMPLE = "sklearn.ensemble.HistGradientBoostingRegressor"
MOST_FITTED_BY_TEMPLATE = 100_000
"""Supervised models are fitted to at most about this many rows: more would take much longer."""


class SupervisedRewardModel(NamedTuple):
    """q̂(x, a) of a fitted ``model`` whose inputs are the context and the action.

    An input row has the encoded context, a one-hot code of the choice in each slot and the powers
    of real-valued parts. Without a model, all rewards were equal to ``constant``.
    """

    model: FittedRegressor | None
    constant: float
    code: ActionCode

    def features(self, context: NDArray[np.float32]) -> Floats:
        return context.astype(np.float64)

    def predict(self, features: Floats, action: NDArray[Any]) -> Floats:
        if self.model is None or not len(features):
            return np.full(len(features), self.constant)
        return self.model.predict(self.code.design(features, action))

    def expected(self, features: Floats, table: Floats, marginals: Floats) -> Floats:
        """Return Σ_a π(a | x) q̂(x, a); actions that the policy never takes are not predicted."""
        found = np.zeros(len(features))
        for action, probability in zip(np.ndindex(self.code.sizes), table.T, strict=True):
            taken = np.flatnonzero(probability > 0)
            repeated = np.broadcast_to(action, (taken.size, len(action)))
            found[taken] += probability[taken] * self.predict(features[taken], repeated)
        return found


def supervised_models(log: Log, template: Any, seed: int) -> list[SupervisedRewardModel]:
    """Return a copy of a model for each fold, fitted to the other folds."""
    fold, code = folds_of(log), ActionCode.of(log.schema.menu)
    log = every_so_many(replace(log, fold=fold), MOST_FITTED_BY_TEMPLATE)
    context = log.schema.context.encode_rows(log.context).astype(np.float64)
    inputs, models = code.design(context, log.action), []
    for number in range(FOLDS):
        others = folds_of(log) != number
        reward, model = log.reward[others], None
        distinct = len(np.unique(reward))
        if hasattr(template, "predict_proba") and distinct > MOST_CLASSES:
            raise InputError(
                f"the reward model {type(template).__name__} is a classifier, and the log has "
                f"{distinct} different rewards: give a regressor, such as {EXAMPLE!r}; classifiers "
                f"work for up to {MOST_CLASSES} different rewards",
                parameter="reward_model",
            )
        if distinct > 1:
            columns = inputs[others], reward, log.counts[others]
            model = fitted_regressor(template, *columns, seed, "reward model")
        constant = float(reward[0]) if distinct else 0.0
        models.append(SupervisedRewardModel(model, constant, code))
    return models


FoldModel: TypeAlias = RewardModel | SupervisedRewardModel


def by_fold(
    models: Sequence[FoldModel], method: str, fold: NDArray[np.int8], *columns: NDArray[Any]
) -> Floats:
    """Return what a ``method`` of the models returns for columns of rows, each by its fold."""
    found: Floats | None = None
    for number, model in enumerate(models):
        mine = np.flatnonzero(fold == number)
        part = getattr(model, method)(*(one[mine] for one in columns))
        found = np.empty((len(fold), *part.shape[1:])) if found is None else found
        found[mine] = part
    assert found is not None
    return found


BAYESIAN = "bayesian"
"""The name of our own regression."""


def reward_models(log: Log, given: Any = None, seed: int = 0) -> tuple[str, Sequence[FoldModel]]:
    """Return the name of a reward model, and for each fold one that is fitted to the other folds.

    ``given`` is ``bayesian`` or None, a dotted name, a table of ``kind`` and parameters, or an
    object of scikit-learn.
    """
    # An unfitted model may refuse to be compared, so only texts are.
    if given is None or (isinstance(given, str) and given == BAYESIAN):
        return BAYESIAN, fitted_models(log)
    table = {"kind": given} if isinstance(given, str) else given
    if isinstance(table, Mapping):
        parameters = {key: value for key, value in table.items() if key != "kind"}
        kind = class_by_name(str(table.get("kind")), "reward model", "predict")
        given = made(kind, kind.__name__, parameters)
    if inspect.isclass(given) or not callable(getattr(given, "fit", None)):
        raise InputError(
            f"the reward model is {given!r:.60}: give an object with the methods fit "
            f"and predict (or predict_proba), or a dotted name such as {EXAMPLE!r}",
            parameter="reward_model",
        )
    return type(given).__name__, supervised_models(log, given, seed)
