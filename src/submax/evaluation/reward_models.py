"""Models of the rewards of a log: our own regression, or a supervised model of another library.

A model of one fold has ``features(context)``, which it computes once, ``[n, D] -> [n, F]``;
``predict(features, action, powers)``, q̂(x, a) for one action in each row; and
``expected(features, table, slot_tables)``, Σ_a π(a | x) q̂(x, a) for a policy.
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError, one_line
from submax.evaluation.disk import pieces
from submax.evaluation.log import Log
from submax.evaluation.sums import mean
from submax.models.classifiers import class_by_name, copied, made, seeded
from submax.models.regression.bayesian import Prior, PriorStructure, Sums, fitted
from submax.models.regression.blas import in_one_thread
from submax.models.regression.context_belief import LENGTHS
from submax.models.regression.features import GROUPS, FeatureMap, new_map

FOLDS = 3
"""Folds of the cross-fitting: each model learns from two thirds of the rows."""
POWERS = 3
"""A real-valued part, scaled to 0 … 1, has this many powers as features: a cubic polynomial."""
MOST_LISTED = 4096
"""Up to this many joint actions the probabilities of all of them are computed in every row. For
more, actions are drawn: a table of 4096 probabilities takes 32 kB per row."""


def polynomial_features(log: Log, action: NDArray[Any]) -> Floats:
    """Return the powers of the real-valued parts of actions, ``[n, POWERS · intervals]``."""
    intervals = log.schema.menu.ranges
    low = np.array([one.low for one in intervals])
    width = np.array([one.high - one.low for one in intervals])
    first = len(log.schema.menu.slots)
    scaled: Floats = (action[:, first:].astype(np.float64) - low) / width
    return np.concatenate([scaled**power for power in range(1, POWERS + 1)], axis=1)


def design(
    features: Floats,
    action: NDArray[Any],
    powers: Floats,
    sizes: tuple[int, ...],
    each: Floats | None = None,
) -> Floats:
    """Return features, those of ``each`` choice (1 if it is None) in every slot, and powers."""
    each = np.ones((len(features), 1)) if each is None else each
    blocks = [features]
    for size, chosen in zip(sizes, action.T, strict=False):
        codes = chosen.astype(np.int64)[:, None] == np.arange(size)
        blocks.append((codes[:, :, None] * each[:, None]).reshape(len(features), -1))
    return np.concatenate([*blocks, powers], axis=1)


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

    ``sizes`` are the numbers of choices of the slots, and ``powers`` is the number of powers of
    real-valued parts. Every plain arm has its own regression, with coefficients that are correlated
    between arms. The effects of several slots add up in one regression: every feature has a
    coefficient shared by all choices and one for each choice. Without ``interactions`` a choice has
    only a constant. Each slot has its own prior variances, and the powers have one. The ``prior``
    was fitted to a sample of the rows; it is None if all rewards of the sample are equal.
    """

    feature_map: FeatureMap
    sizes: tuple[int, ...]
    powers: int
    interactions: bool
    prior: Prior | None = None

    @property
    def separate(self) -> bool:
        """Whether every choice has its own regression: plain arms without real-valued parts."""
        return len(self.sizes) == 1 and self.powers == 0

    @property
    def _each(self) -> int:
        """The number of coefficients of every choice, if there is one regression."""
        return len(self.feature_map.groups) if self.interactions else 1

    @property
    def structure(self) -> PriorStructure:
        """The prior correlations of the coefficients, and the group of each."""
        groups = self.feature_map.groups
        if self.separate:
            return PriorStructure.sharing(groups, self.sizes[0])
        of_slots = [
            np.tile(groups[: self._each] + GROUPS * (1 + slot), size)
            for slot, size in enumerate(self.sizes)
        ]
        of_powers = np.full(self.powers, GROUPS * (1 + len(self.sizes)))
        return PriorStructure.independent(np.concatenate([groups, *of_slots, of_powers]), 1)

    def vague(self, sums: Sums) -> Prior:
        """Return the prior to start from."""
        return Prior.vague(GROUPS * (1 + len(self.sizes)) + 1, sums.variance)

    def nothing(self, offset: float) -> Sums:
        """Return the sums of the regression over no rows; rewards are measured from ``offset``."""
        structure = self.structure
        return Sums.empty(len(structure.directions), len(structure.groups), offset)

    def features(self, context: NDArray[np.float32]) -> Floats:
        """Return the features of encoded contexts: ``[n, D] -> [n, F]``."""
        return self.feature_map.rows(context.astype(np.float64))

    def inputs(
        self, features: Floats, action: NDArray[Any], powers: Floats
    ) -> tuple[Floats, Integers]:
        """Return the inputs of the regression, and the number of the regression of each row."""
        if self.separate:
            return features, action[:, 0].astype(np.int64)
        each = features[:, : self._each]
        return design(features, action, powers, self.sizes, each), np.zeros(len(each), np.int64)

    def model(self, sums: Sums, centre: float) -> "RewardModel":
        """Return the model that is fitted to some rows."""
        width, prior = len(self.feature_map.groups), self.prior or self.vague(sums)
        found = np.zeros(sums.moment.shape[:2])
        if sums.variance > 0:
            found = fitted(sums, self.structure, prior, centre, STEPS).coefficients
        shared, powers = np.zeros(width), np.zeros(0)
        if not self.separate:
            ends = width, width + sum(self.sizes) * self._each
            shared, choices, powers = np.split(found[0], ends)
            missing = (0, 0), (0, width - self._each)
            found = np.pad(choices.reshape(-1, self._each), missing)
        coefficients = self.feature_map.for_raw(np.vstack([shared, found])).T
        return RewardModel(self.feature_map, self.sizes, centre, coefficients, powers)


def reward_maps(log: Log, fold: NDArray[np.int8], folds: int) -> list[RewardMap]:
    """Return for each fold the map with the highest marginal likelihood on the other folds.

    Landmarks and scales are the same for all folds; the kernel length and the prior, which depend
    on rewards, may differ.
    """
    rng, menu, width = np.random.default_rng(0), log.schema.menu, log.schema.context.width
    row: Integers = np.arange(len(log))
    if len(row) > SAMPLE:
        row = np.sort(rng.choice(len(row), SAMPLE, replace=False))
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
    context = log.schema.context.encode_rows(log.context[row]).astype(np.float64)
    count = np.ones(len(row)) if log.count is None else log.count[row]
    first = new_map(context, count, max(size, 2), rng, kernels)
    sizes = tuple(len(slot.choices) for slot in menu.slots)
    reward, action = log.reward[row], log.action[row]
    powers = polynomial_features(log, action)
    best: dict[int, tuple[float, RewardMap]] = {}
    for length in LENGTHS if len(first.landmarks) else LENGTHS[-1:]:
        found = RewardMap(first.of_length(length), sizes, powers.shape[1], interactions)
        inputs, number = found.inputs(found.feature_map.rows(context), action, powers)
        for held_out in range(folds):
            mine = fold[row] != held_out
            centre = mean(reward[mine], count[mine]) if mine.any() else 0.0
            sums = found.nothing(centre).add(inputs[mine], number[mine], reward[mine], count[mine])
            evidence, prior = 0.0, None
            if sums.variance > 0:
                posterior = fitted(sums, found.structure, found.vague(sums), centre, STEPS)
                evidence, prior = posterior.log_evidence, posterior.prior
            if held_out not in best or evidence > best[held_out][0]:
                best[held_out] = evidence, found._replace(prior=prior)
    return [best[held_out][1] for held_out in range(folds)]


class RewardModel(NamedTuple):
    """q̂(x, a) = ``mean`` + θ_0 · f(x) + Σ_s θ_{a_s} · f(x) + ``powers`` · g(a).

    f are the raw features of the ``feature_map``: whitening millions of rows would take half of the
    time of an evaluation, so the ``coefficients [F, 1 + choices]`` contain the whitening. The first
    column is θ_0, and the others are those of all choices of the slots, whose numbers are
    ``sizes``. g are the powers of the real-valued parts of the action. The scores of slots add up,
    so the expected reward of a policy depends only on its probabilities within each slot.
    """

    feature_map: FeatureMap
    sizes: tuple[int, ...]
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

    def expected(self, features: Floats, table: Floats, slot_tables: Sequence[Floats]) -> Floats:
        """Return Σ_a π(a | x) q̂(x, a), which depends only on probabilities within each slot."""
        found: Floats = features[:, 0].copy()
        found += np.einsum("nc,nc->n", np.concatenate(slot_tables, axis=1), features[:, 1:])
        return found

    def predict(self, features: Floats, action: NDArray[Any], powers: Floats) -> Floats:
        first = 1 + np.cumsum((0, *self.sizes))[:-1]
        chosen = first + action[:, : len(first)].astype(np.int64)
        scores: Floats = np.take_along_axis(features, chosen, axis=1).sum(axis=1)
        return features[:, 0] + scores + powers @ self.powers


@in_one_thread
def fitted_models(log: Log) -> list[RewardModel]:
    """Return a Bayesian regression for each fold of ``folds_of``, fitted to the other folds.

    The kernel length, the prior variances and the noise are fitted to the same rows by marginal
    likelihood, so a model never depends on the rewards that it predicts. If there are more
    than ``MOST_FITTED`` rows, the models are fitted to every second, third, … row.
    """
    fold = folds_of(log)
    maps = reward_maps(log, fold, FOLDS)
    # One map of each kernel length is enough.
    by_length = {one.feature_map.length: one for one in maps}
    sums = {length: _sums(log, fold, one) for length, one in by_length.items()}
    models = []
    for number, reward_map in enumerate(maps):
        of_folds = sums[reward_map.feature_map.length]
        one, other = (each for place, each in enumerate(of_folds) if place != number)
        models.append(reward_map.model(one.joined(other), _mean_of(log, fold != number)))
    return models


def _sums(log: Log, fold: NDArray[np.int8], reward_map: RewardMap) -> list[Sums]:
    """Return the sums over the rows of each fold, with rewards measured from the fold's mean."""
    sums = [reward_map.nothing(_mean_of(log, fold == number)) for number in range(FOLDS)]
    used = np.arange(0, len(log), -(-len(log) // MOST_FITTED))
    for rows in pieces(len(used), max(NUMBERS_PER_CHUNK // sums[0].moment.shape[1], 1)):
        place = used[rows]
        features = reward_map.features(log.schema.context.encode_rows(log.context[place]))
        action = log.action[place]
        inputs, regression = reward_map.inputs(features, action, polynomial_features(log, action))
        count = np.ones(len(place)) if log.count is None else log.count[place]
        for number in range(FOLDS):
            mine = fold[place] == number
            sums[number] = sums[number].add(
                inputs[mine], regression[mine], log.reward[place][mine], count[mine]
            )
    return sums


def _mean_of(log: Log, which: Booleans) -> float:
    count = None if log.count is None else log.count[which]
    return mean(log.reward[which], count) if which.any() else 0.0


# Supervised models of other libraries -------------------------------------------------------------

MOST_CLASSES = 20
"""A classifier models rewards only if at most this many different ones occur."""
EXAMPLE = "sklearn.ensemble.HistGradientBoostingRegressor"
MOST_FITTED_BY_TEMPLATE = 100_000
"""Supervised models are fitted to at most about this many rows: more would take much longer."""


def reward_template(given: Any) -> tuple[str, Any]:
    """Return the name and an unfitted copy of a supervised model.

    It is given as an object, a dotted name, or a table of ``kind`` and parameters.

    >>> reward_template("sklearn.linear_model.Ridge")[0]
    'Ridge'
    """
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
    return type(given).__name__, copied(given)


def _fitted_template(
    template: Any, inputs: Floats, reward: Floats, seed: int, count: Floats | None
) -> tuple[Any, Floats | None]:
    """Return a fitted copy, and for a classifier the rewards of its classes.

    The copy is None if all rewards are equal. ``count [n]`` is given to the model as the weights of
    its rows.
    """
    values, label = np.unique(reward, return_inverse=True)
    if len(values) < 2:
        return None, values if len(values) else np.zeros(1)
    model = seeded(copied(template), seed)
    name, classifies = type(model).__name__, hasattr(model, "predict_proba")
    if classifies and len(values) > MOST_CLASSES:
        raise InputError(
            f"the reward model {name} is a classifier, but the log has {len(values)} different "
            f"rewards, and up to {MOST_CLASSES} are allowed: give a regressor, such as {EXAMPLE!r}",
            parameter="reward_model",
        )
    try:
        weights = {} if count is None else {"sample_weight": count}
        model.fit(inputs, label.ravel() if classifies else reward, **weights)
    except Exception as error:
        raise InputError(
            f"the reward model {name} cannot be fitted to {len(reward)} rows "
            f"({one_line(error)}): change its parameters",
            parameter="reward_model",
        ) from error
    return model, values if classifies else None


class SupervisedRewardModel(NamedTuple):
    """q̂(x, a) of a fitted ``model`` whose inputs are the context and the action.

    An input row has the encoded context, a one-hot code of the choice in each slot (``sizes`` are
    the numbers of choices) and the powers of real-valued parts. For a classifier ``values`` are the
    rewards of its classes, and q̂ is their mean; for a regressor they are None. ``actions [M, S]``
    are all joint actions. Without a model, all rewards were equal to the first of ``values``.
    """

    model: Any
    values: Floats | None
    actions: NDArray[Any]
    sizes: tuple[int, ...]

    def features(self, context: NDArray[np.float32]) -> Floats:
        return context.astype(np.float64)

    def predict(self, features: Floats, action: NDArray[Any], powers: Floats) -> Floats:
        if self.model is None or not len(features):
            return np.full(len(features), 0.0 if self.values is None else self.values[0])
        inputs = design(features, action, powers, self.sizes)
        if self.values is None:
            return np.asarray(self.model.predict(inputs), dtype=np.float64).reshape(-1)
        probabilities = np.asarray(self.model.predict_proba(inputs), dtype=np.float64)
        return probabilities @ self.values

    def expected(self, features: Floats, table: Floats, slot_tables: Sequence[Floats]) -> Floats:
        """Return Σ_a π(a | x) q̂(x, a); actions that the policy never takes are not predicted."""
        found, powers = np.zeros(len(features)), np.zeros((len(features), 0))
        for action, probability in zip(self.actions, table.T, strict=True):
            taken = np.flatnonzero(probability > 0)
            if taken.size:
                repeated = np.broadcast_to(action, (taken.size, len(action)))
                q = self.predict(features[taken], repeated, powers[taken])
                found[taken] += probability[taken] * q
        return found


def supervised_models(log: Log, template: Any, seed: int) -> list[SupervisedRewardModel]:
    """Return a copy of a model for each fold, fitted to the other folds."""
    row = np.arange(0, len(log), -(-len(log) // MOST_FITTED_BY_TEMPLATE))
    context = log.schema.context.encode_rows(log.context[row]).astype(np.float64)
    sizes = tuple(len(slot.choices) for slot in log.schema.menu.slots)
    inputs = design(context, log.action[row], polynomial_features(log, log.action[row]), sizes)
    menu, fold = log.schema.menu.revived, folds_of(log)[row]
    space = menu.space(menu.active)
    listed = not space.reals and space.size <= MOST_LISTED
    actions = space.listing() if listed else np.zeros((0, 1))
    models = []
    for number in range(FOLDS):
        others = fold != number
        count = None if log.count is None else log.count[row][others]
        one = _fitted_template(template, inputs[others], log.reward[row][others], seed, count)
        models.append(SupervisedRewardModel(*one, actions, sizes))
    return models


FoldModel: TypeAlias = RewardModel | SupervisedRewardModel
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
    name, template = reward_template(given)
    return name, supervised_models(log, template, seed)
