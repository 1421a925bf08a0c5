"""Models of the rewards of a log, and the choice of one by its held-out error."""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError, one_line
from submax.evaluation.log import Log
from submax.evaluation.sums import mean
from submax.models.classifiers import class_by_name, copied, seeded
from submax.models.regression.bayesian import Posterior, Prior, PriorStructure, Sums, fitted
from submax.models.regression.blas import in_one_thread
from submax.models.regression.context_belief import LENGTHS
from submax.models.regression.features import GROUPS, FeatureMap, new_map

POWERS = 3
"""A real-valued part, scaled to 0 … 1, has this many powers as features: a cubic polynomial."""


def polynomial_features(log: Log, action: NDArray[Any]) -> Floats:
    """Return the powers of the real-valued parts of actions, ``[n, POWERS · intervals]``."""
    intervals = log.schema.menu.ranges
    low = np.array([one.low for one in intervals])
    width = np.array([one.high - one.low for one in intervals])
    first = len(log.schema.menu.slots)
    scaled: Floats = (action[:, first:].astype(np.float64) - low) / width
    return np.concatenate([scaled**power for power in range(1, POWERS + 1)], axis=1)


class FoldModel(Protocol):
    """Predicts the reward q̂(x, a) of actions in contexts."""

    def features(self, context: NDArray[np.float32]) -> Floats:
        """Return what the model computes once for encoded contexts, ``[n, D] -> [n, F]``."""

    def predict(self, features: Floats, action: NDArray[Any], powers: Floats) -> Floats:
        """Return q̂ for one action in each row; ``powers`` are those of its real-valued parts."""

    def expected(self, features: Floats, table: Floats, slot_tables: Sequence[Floats]) -> Floats:
        """Return Σ_a π(a | x) q̂(x, a) for a policy, ``[n]``.

        ``table [n, M]`` has the probabilities of all joint actions, and ``slot_tables`` those of
        the choices within each slot.
        """


class Coefficients(NamedTuple):
    """Regression coefficients of the F features of a context, and of powers of real-valued parts.

    ``slots`` has the coefficients of every choice of each slot, ``[choices, F]``; ``shared [F]``
    are common to all choices; ``powers`` belong to the powers of real-valued parts.
    """

    slots: list[Floats]
    shared: Floats
    powers: Floats


class RewardDesign(NamedTuple):
    """The design of a regression of rewards on contexts and actions.

    ``sizes`` are the numbers of choices of the slots, ``groups [F]`` is the group of each feature
    of the context (features of a group share a prior variance), and ``powers`` is the number of
    powers of real-valued parts.

    Every plain arm has its own regression, with coefficients that are correlated between arms. The
    effects of several slots add up in one regression: every feature has a coefficient shared by
    all choices and one for each choice. Without ``interactions`` a choice has only a constant.
    Each slot has its own prior variances, and the powers have one.
    """

    sizes: tuple[int, ...]
    groups: Integers
    powers: int
    interactions: bool

    @property
    def separate(self) -> bool:
        """Whether every choice has its own regression: plain arms without real-valued parts."""
        return len(self.sizes) == 1 and self.powers == 0

    @property
    def prior_groups(self) -> int:
        """The number of groups of coefficients that have their own prior variance."""
        return GROUPS if self.separate else GROUPS * (1 + len(self.sizes)) + 1

    @property
    def design(self) -> PriorStructure:
        """The prior correlations of the coefficients, and the group of each."""
        if self.separate:
            return PriorStructure.sharing(self.groups, self.sizes[0])
        choice = self.groups[: self._each]
        of_slots = [
            np.tile(choice + GROUPS * (1 + slot), size) for slot, size in enumerate(self.sizes)
        ]
        of_powers = np.full(self.powers, self.prior_groups - 1)
        return PriorStructure.independent(np.concatenate([self.groups, *of_slots, of_powers]), 1)

    def nothing(self, offset: float) -> Sums:
        """Return the sums of the regression over no rows; rewards are measured from ``offset``."""
        if self.separate:
            return Sums.empty(self.sizes[0], len(self.groups), offset)
        return Sums.empty(1, self._unknowns, offset)

    def added(
        self,
        sums: Sums,
        features: Floats,
        action: NDArray[Any],
        powers: Floats,
        reward: Floats,
        count: Floats | None = None,
    ) -> Sums:
        """Return the sums with more rows added, each as often as its ``count``, or once."""
        weight = np.ones(len(reward)) if count is None else count
        if self.separate:
            return sums.add(features, action[:, 0].astype(np.int64), reward, weight)
        if not len(reward):
            return sums
        gram, moment = sums.gram.copy(), sums.moment.copy()
        relative = reward - sums.offset
        known = np.concatenate([features, powers], axis=1)
        chosen = action[:, : len(self.sizes)].astype(np.int64)
        for choices, rows in _by_choices(chosen):
            # Rows with the same choices add to the same coefficients, so they are added together.
            place, column = self._places(choices)
            weighted = weight[rows, None] * known[rows]
            product, earned = weighted.T @ known[rows], relative[rows] @ weighted
            gram[0][np.ix_(place, place)] += product[np.ix_(column, column)]
            moment[0, place] += earned[column]
        return sums._replace(
            gram=gram,
            moment=moment,
            weight=sums.weight + float(weight.sum()),
            reward=sums.reward + float(weight @ relative),
            square=sums.square + float(weight @ relative**2),
        )

    def coefficients(self, posterior: Posterior) -> Coefficients:
        """Return the posterior mean, divided into slots, shared coefficients and powers."""
        found, width = posterior.coefficients, len(self.groups)
        if self.separate:
            return Coefficients([found], np.zeros(width), np.zeros(0))
        slots, begin, each = [], width, self._each
        for size in self.sizes:
            block = found[0, begin : begin + size * each].reshape(size, each)
            slots.append(np.pad(block, ((0, 0), (0, width - each))))
            begin += size * each
        return Coefficients(slots, found[0, :width], found[0, begin:])

    def zero(self) -> Coefficients:
        """Return coefficients of 0, the result if all rewards are equal."""
        width = len(self.groups)
        slots = [np.zeros((size, width)) for size in self.sizes]
        return Coefficients(slots, np.zeros(width), np.zeros(self.powers))

    @property
    def _each(self) -> int:
        """The number of coefficients of every choice."""
        return len(self.groups) if self.interactions else 1

    @property
    def _unknowns(self) -> int:
        return len(self.groups) + sum(self.sizes) * self._each + self.powers

    def _places(self, choices: Integers) -> tuple[Integers, Integers]:
        """Return the coefficients that act in rows with these ``choices``.

        For each also the column, among features and powers, by which it is multiplied.
        """
        width, each = len(self.groups), self._each
        first = width + each * np.concatenate([[0], np.cumsum(self.sizes)])
        begin = (first[:-1] + each * choices)[:, None]
        of_slots = (begin + np.arange(each)).ravel()
        of_powers = np.arange(self.powers)
        place = np.concatenate([np.arange(width), of_slots, first[-1] + of_powers])
        column = np.concatenate(
            [np.arange(width), np.tile(np.arange(each), len(choices)), width + of_powers]
        )
        return place.astype(np.int64), column


def _by_choices(chosen: Integers) -> list[tuple[Integers, Integers]]:
    """Return the distinct combinations of choices, each with the numbers of its rows."""
    if not chosen.shape[1]:
        return [(chosen[0], np.arange(len(chosen)))]
    different, which = np.unique(chosen, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(different)))
    return list(zip(different, np.split(order, ends[:-1]), strict=True))


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


FOLDS = 3
"""Folds of the cross-fitting: each model learns from two thirds of the rows."""
MOST_FITTED = 150_000
"""The models are fitted to at most about this many rows: more would hardly change them."""
ROWS_PER_CHUNK = 1 << 14
"""Rows whose features are in memory together: 200 features of each take 26 MB."""
ROWS_PER_PREDICTION = 1 << 12
"""Rows that are predicted together: their features, about 4 MB, stay in the cache."""


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
    # One map of each kernel length is enough.
    by_length = {one.feature_map.length: one for one in maps}
    sums = {length: _sums(log, fold, one) for length, one in by_length.items()}
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
    count = None if log.count is None else log.count[which]
    return mean(reward, count) if reward.size else 0.0


MOST_CLASSES = 20
"""A classifier models rewards only if at most this many different ones occur."""
EXAMPLE = "sklearn.ensemble.HistGradientBoostingRegressor"


@dataclass(frozen=True, eq=False)
class RewardTemplate:
    """A supervised model of any library, and the ``name`` by which tables know it."""

    name: str
    unfitted: Any

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return the template for an object, a dotted name, or a table of ``kind`` and parameters.

        >>> RewardTemplate.of("sklearn.linear_model.Ridge").name
        'Ridge'
        """
        if isinstance(given, str):
            given = {"kind": given}
        if isinstance(given, Mapping):
            parameters = {key: value for key, value in given.items() if key != "kind"}
            kind = class_by_name(str(given.get("kind")), "reward model", "predict")
            for key in parameters:
                one_of(f"parameter of {kind.__name__}:", key, inspect.signature(kind).parameters)
            given = kind(**parameters)
        if inspect.isclass(given) or not callable(getattr(given, "fit", None)):
            raise InputError(
                f"the reward model is {given!r:.60}: give an object with the methods fit "
                f"and predict (or predict_proba), or a dotted name such as {EXAMPLE!r}",
                parameter="reward_model",
            )
        return cls(type(given).__name__, copied(given))

    def fitted(
        self, inputs: Floats, reward: Floats, seed: int, count: Floats | None = None
    ) -> tuple[Any, Floats | None]:
        """Return a fitted copy, and for a classifier the rewards of its classes.

        The copy is None if all rewards are equal. ``count [n]`` is given to the model as the
        weights of its rows.
        """
        values, label = np.unique(reward, return_inverse=True)
        if len(values) < 2:
            return None, values if len(values) else np.zeros(1)
        model = seeded(copied(self.unfitted), seed)
        classifies = hasattr(model, "predict_proba")
        if classifies and len(values) > MOST_CLASSES:
            raise InputError(
                f"the reward model {self.name} is a classifier, but the log has "
                f"{len(values)} different rewards, and up to {MOST_CLASSES} are allowed: "
                f"give a regressor, such as {EXAMPLE!r}",
                parameter="reward_model",
            )
        try:
            weights = {} if count is None else {"sample_weight": count}
            model.fit(inputs, label.ravel() if classifies else reward, **weights)
        except Exception as error:
            raise InputError(
                f"the reward model {self.name} cannot be fitted to {len(reward)} rows "
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
        """Return the encoded contexts, which are the inputs of the model."""
        return context.astype(np.float64)

    def predict(self, features: Floats, action: NDArray[Any], powers: Floats) -> Floats:
        """Return q̂ for one action in each row."""
        if self.model is None or not len(features):
            return np.full(len(features), 0.0 if self.values is None else self.values[0])
        inputs = design(features, action, powers, self.sizes)
        if self.values is None:
            return np.asarray(self.model.predict(inputs), dtype=np.float64).reshape(-1)
        probabilities = np.asarray(self.model.predict_proba(inputs), dtype=np.float64)
        return probabilities @ self.values

    def expected(self, features: Floats, table: Floats, slot_tables: Sequence[Floats]) -> Floats:
        """Return Σ_a π(a | x) q̂(x, a); actions that the policy never takes are not predicted."""
        found = np.zeros(len(features))
        powers = np.zeros((len(features), 0))
        for number, action in enumerate(self.actions):
            probability = table[:, number]
            taken = np.flatnonzero(probability > 0)
            if taken.size:
                repeated = np.broadcast_to(action, (taken.size, len(action)))
                q = self.predict(features[taken], repeated, powers[taken])
                found[taken] += probability[taken] * q
        return found


def design(
    features: Floats, action: NDArray[Any], powers: Floats, sizes: tuple[int, ...]
) -> Floats:
    """Return the inputs of a supervised model: context, one-hot choices, powers."""
    chosen = [
        (action[:, slot].astype(np.int64)[:, None] == np.arange(size)).astype(np.float64)
        for slot, size in enumerate(sizes)
    ]
    return np.concatenate([features, *chosen, powers], axis=1)


BAYESIAN, AUTO = "bayesian", "auto"
"""Names of reward models: our own regression, and the better of it and boosted trees."""
BOOSTED = {
    "kind": "sklearn.ensemble.HistGradientBoostingRegressor",
    "max_iter": 100,
    "learning_rate": 0.08,
}
"""Boosted trees among which ``auto`` chooses, if scikit-learn is installed."""
MOST_LISTED = 4096
"""Up to this many joint actions the probabilities of all of them are computed in every row. For
more, actions are drawn: a table of 4096 probabilities takes 32 kB per row."""
MOST_FITTED_BY_TEMPLATE = 100_000
"""Supervised models are fitted to at most about this many rows: more would take much longer."""


class ModelChoice(NamedTuple):
    """A model of rewards for each fold; its ``name``, and the held-out error of every candidate.

    The error is the root mean squared error of predictions of rows without which the model was
    fitted. There are no errors if there was only one candidate.
    """

    models: list[FoldModel]
    name: str
    errors: dict[str, float]

    def notes(self) -> list[str]:
        """Return a sentence that says which model was used, unless it is the usual one."""
        if not self.errors:
            return [] if self.name == BAYESIAN else [f"the reward model is {self.name}"]
        errors = ", ".join(f"{name} {error:.4g}" for name, error in self.errors.items())
        return [f"the reward model is {self.name}, by its held-out error ({errors})"]


def chosen_models(log: Log, given: Any = None, seed: int = 0) -> ModelChoice:
    """Fit one or several reward models, cross-fitted, and return the one with the least error.

    ``given`` is a name (``bayesian``, ``auto`` or a dotted name), a table of ``kind`` and
    parameters, an object of scikit-learn, or a list of these. None is ``bayesian``.
    """
    # An unfitted model may refuse to be compared or counted, so it is only asked for its type.
    wanted = list(given) if isinstance(given, (list, tuple)) else [given]
    wanted = [BAYESIAN if one is None else one for one in wanted]
    if any(_same(one, AUTO) for one in wanted):
        others = [one for one in wanted if not _same(one, AUTO) and not _same(one, BAYESIAN)]
        boosted = log.schema.context.width > 0 and find_spec("sklearn") is not None
        wanted = [BAYESIAN, *[BOOSTED] * boosted, *others]
    fold = folds_of(log)
    found: dict[str, list[FoldModel]] = {}
    for one in wanted:
        name, models = _fitted_template(log, fold, one, seed)
        if name in found:
            raise InputError(
                f"two reward models are called {name}: leave one out, or rename it",
                parameter="reward_model",
            )
        found[name] = models
    if len(found) == 1:
        ((name, models),) = found.items()
        return ModelChoice(models, name, {})
    errors = {name: _held_out_error(log, fold, models) for name, models in found.items()}
    best = min(errors, key=lambda name: errors[name])
    return ModelChoice(found[best], best, errors)


def _same(given: Any, name: str) -> bool:
    return isinstance(given, str) and given == name


def _fitted_template(
    log: Log, fold: NDArray[np.int8], given: Any, seed: int
) -> tuple[str, list[FoldModel]]:
    if _same(given, BAYESIAN):
        return BAYESIAN, list(fitted_models(log))
    template = RewardTemplate.of(given)
    step = -(-len(log) // MOST_FITTED_BY_TEMPLATE)
    row = np.arange(0, len(log), step)
    context = log.schema.context.encode_rows(log.context[row]).astype(np.float64)
    sizes = tuple(len(slot.choices) for slot in log.schema.menu.slots)
    inputs = design(context, log.action[row], polynomial_features(log, log.action[row]), sizes)
    menu = log.schema.menu.revived
    space = menu.space(menu.active)
    listed = not space.reals and space.size <= MOST_LISTED
    actions = space.listing() if listed else np.zeros((0, 1))
    models: list[FoldModel] = []
    for number in range(FOLDS):
        others = fold[row] != number
        count = None if log.count is None else log.count[row][others]
        fitted = template.fitted(inputs[others], log.reward[row][others], seed, count)
        models.append(SupervisedRewardModel(*fitted, actions, sizes))
    return template.name, models


def _held_out_error(log: Log, fold: NDArray[np.int8], models: Sequence[FoldModel]) -> float:
    total, first = 0.0, 0
    for part in log.parts:
        rows = slice(first, first + len(part.reward))
        error = part.reward - _held_out(log, part, fold[rows], models)
        total += float(error @ (error if log.count is None else log.count[rows] * error))
        first = rows.stop
    return float(np.sqrt(total / max(log.decisions, 1)))


def _held_out(log: Log, part: Any, fold: NDArray[np.int8], models: Sequence[FoldModel]) -> Floats:
    powers = polynomial_features(log, part.action)
    predicted = np.empty(len(part.reward))
    for number, model in enumerate(models):
        mine = np.flatnonzero(fold == number)
        features = model.features(part.context[mine])
        predicted[mine] = model.predict(features, part.action[mine], powers[mine])
    return predicted
