"""Models of the rewards of a log, cross-fitted: our own regression, or one of another library."""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.errors import InputError
from submax.core.numerics import pieces
from submax.evaluation.log import Log
from submax.evaluation.propensities import randomly_thinned
from submax.models.classifiers import FittedRegressor, class_by_name, fitted_regressor, made
from submax.models.regression.bayesian import Sums
from submax.models.regression.blas import in_one_thread
from submax.models.regression.context_belief import LENGTHS
from submax.models.regression.features import new_map
from submax.models.regression.reward_model import ActionCode, RewardMap, RewardModel
from submax.schema.actions import ActionSpec
from submax.statistics.sums import mean

FOLDS = 3
"""Folds of the cross-fitting: each model learns from two thirds of the rows."""


def action_code(menu: ActionSpec) -> ActionCode:
    """Return how models of rewards see the actions that are declared."""
    low = np.array([interval.low for interval in menu.ranges])
    high = np.array([interval.high for interval in menu.ranges])
    return ActionCode(tuple(len(slot.choices) for slot in menu.slots), low, high - low)


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
MOST_FITTED = 150_000
"""The models are fitted to at most about this many rows: more would hardly change them."""
NUMBERS_PER_CHUNK = 1 << 21
"""Numbers of the design of the regression that are in memory together: 16 MB."""


def sums_of_folds(reward_map: RewardMap, log: Log) -> list[Sums]:
    """Return the sums over the rows of each fold; rewards are measured from its mean."""
    structure, fold, weight = reward_map.structure, folds_of(log), weights_of(log)
    shape = len(structure.directions), len(structure.groups)
    sums = [Sums.empty(*shape, _mean_of(log, fold == number)) for number in range(FOLDS)]
    for rows in pieces(len(log), max(NUMBERS_PER_CHUNK // shape[1], 1)):
        context = log.schema.context.encode_rows(log.context[rows])
        inputs, regression = reward_map.rows(context, log.action[rows])
        columns = inputs, regression, log.reward[rows], weight[rows]
        for number in range(FOLDS):
            mine = fold[rows] == number
            sums[number] = sums[number].add(*(column[mine] for column in columns))
    return sums


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
    first, fold = new_map(context, weights_of(log), max(size, 2), rng, kernels), folds_of(log)
    best: dict[int, tuple[float, RewardMap]] = {}
    for length in LENGTHS if len(first.landmarks) else LENGTHS[-1:]:
        reward_map = RewardMap(first.of_length(length), action_code(menu), interactions)
        of_folds = sums_of_folds(reward_map, log)
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
    return mean(log.reward[which], weights_of(log)[which]) if which.any() else 0.0


def weights_of(log: Log) -> Floats:
    """Return how much each row counts: its decisions, and in a sample its sampling weight."""
    if log.sampling_weight is None:
        return log.counts
    return log.counts * log.sampling_weight / mean(log.sampling_weight, log.counts)


@in_one_thread
def fitted_models(log: Log) -> list[RewardModel]:
    """Return a Bayesian regression for each fold of ``folds_of``, fitted to the other folds.

    The kernel length, the prior variances and the noise are fitted to the same rows by marginal
    likelihood, so a model never depends on the rewards that it predicts. If there are more
    than ``MOST_FITTED`` rows, the models are fitted to random ones.
    """
    fold = folds_of(log)
    log = replace(log, fold=fold)
    maps, used = reward_maps(log), randomly_thinned(log, MOST_FITTED, 0)
    # One map of each kernel length is enough.
    by_length = {fitted_map.feature_map.length: fitted_map for fitted_map in maps}
    sums = {length: sums_of_folds(fitted_map, used) for length, fitted_map in by_length.items()}
    return [
        fitted_map.model(
            _of_others(sums[fitted_map.feature_map.length], number),
            _mean_of(log, fold != number),
        )
        for number, fitted_map in enumerate(maps)
    ]


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
    fold, code = folds_of(log), action_code(log.schema.menu)
    log = randomly_thinned(replace(log, fold=fold), MOST_FITTED_BY_TEMPLATE, 0)
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
            columns = inputs[others], reward, weights_of(log)[others]
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
