"""What a log says about other policies: the numbers of each row that off-policy estimators need."""

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.core.spaces import Space
from submax.evaluation.estimators import Evidence, OffPolicyEstimator
from submax.evaluation.log import Log, divided_by_fold, trajectory_weights
from submax.evaluation.propensities import MOST_ROWS, ChoiceModel, SlotPropensities, random_rows
from submax.evaluation.reward_models import (
    FOLDS,
    MOST_LISTED,
    FoldModel,
    chosen_models,
    folds_of,
    polynomial_features,
)
from submax.evaluation.sums import Adjustment, Terms, sampled
from submax.evaluation.targets import TargetPolicy, check_same_schema
from submax.schema.model import reindexed
from submax.schema.rows import Columns
from submax.schema.schema import Schema
from submax.schema.trained_policy import TrainedPolicy


def among_eligible(table: Floats, mask: Booleans) -> Floats:
    """Return the probabilities given that the action is eligible.

    They are uniform over the eligible actions if the policy gives all of them probability 0.
    """
    eligible = np.where(mask, table, 0.0)
    total = eligible.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        uniform = mask / mask.sum(axis=1, keepdims=True)
        restricted: Floats = np.where(total > 0, eligible / total, uniform)
    return restricted


def tables_of_slots(table: Floats, sizes: tuple[int, ...]) -> list[Floats]:
    """Return the marginal probabilities of the choices of each slot, ``[n, choices]`` each."""
    if len(sizes) == 1:
        return [table]
    joint = table.reshape(len(table), *sizes)
    axes = range(1, len(sizes) + 1)
    return [joint.sum(axis=tuple(axis for axis in axes if axis != slot)) for slot in axes]


def slot_probabilities(slot_tables: list[Floats], action: NDArray[Any]) -> Floats:
    """Return the probability of the choice in each slot of each row's action, ``[n, S]``."""
    row = np.arange(len(action))
    probabilities = [
        table[row, chosen.astype(np.int64)]
        for table, chosen in zip(slot_tables, action.T, strict=True)
    ]
    return np.stack(probabilities, axis=1)


def unsupported_share(slot_tables: list[Floats], untaken: list[Booleans]) -> Floats:
    """Return the probability that any slot takes a choice that no row of the log took.

    Slots are treated as independent.
    """
    supported = np.ones(len(slot_tables[0]))
    for table, never in zip(slot_tables, untaken, strict=True):
        supported *= 1 - table[:, never].sum(axis=1)
    return 1 - supported


UNIFORM_TOLERANCE = 1e-6
"""Relative difference from 1 / (number of eligible actions) up to which a propensity is uniform."""


def group_index(schema: Schema) -> Integers | None:
    """Return the group of every action: actions with the same categories form a group.

    If no feature is a category, all features must be equal. None if actions have no features, if
    every action is a group of its own or if all are one group.
    """
    menu = schema.menu
    if len(menu.slots) != 1 or menu.ranges:
        return None
    described = [dict(choice.features or {}) for choice in menu.slots[0].choices]
    named = any(isinstance(value, str) for one in described for value in one.values())
    keys = [
        tuple(
            sorted((name, str(value)) for name, value in one.items())
            if not named
            else sorted((name, value) for name, value in one.items() if isinstance(value, str))
        )
        for one in described
    ]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    if not 1 < len(places) < len(keys):
        return None
    return np.array([places[key] for key in keys])


class ActionGroups:
    """Groups of actions with the same features: the group of every action, ``group_of [M]``.

    ``estimated`` says that a model estimates the propensities of groups. They are known if the log
    was uniform; otherwise a log has only the propensity of the action that was taken.
    """

    def __init__(self, log: Log, group_of: Integers, seed: int) -> None:
        self.group_of, self._floor = group_of, 0.0
        self._model: ChoiceModel | None = None
        counts, group = self._eligible(log), self._group(log)
        sizes = counts.sum(axis=1)[log.eligible_set]
        if not np.allclose(log.propensity * sizes, 1.0, rtol=0, atol=UNIFORM_TOLERANCE):
            row = random_rows(len(log), MOST_ROWS, seed)
            self._model = ChoiceModel.fitted(log, group, counts > 0, row)
            self._floor = float(1 / np.sqrt(log.decisions) / counts.shape[1])

    @property
    def estimated(self) -> bool:
        """Whether a model estimates the propensities."""
        return self._model is not None

    def propensity(self, log: Log) -> Floats:
        """Return the propensity of the group of each row's action, ``[n]``."""
        counts, group = self._eligible(log), self._group(log)
        if self._model is not None:
            return np.maximum(self._model.of_rows(log, group, counts > 0), self._floor)
        known: Floats = counts[log.eligible_set, group] / counts.sum(axis=1)[log.eligible_set]
        return known

    def probability(self, table: Floats, action: Integers) -> Floats:
        """Return the probability of the group of each row's action under a policy, ``[n]``."""
        same = self.group_of[action][:, None] == self.group_of
        found: Floats = np.where(same, table, 0.0).sum(axis=1)
        return found

    def _group(self, log: Log) -> Integers:
        return self.group_of[log.action[:, 0].astype(np.int64)]

    def _eligible(self, log: Log) -> Integers:
        """Return the number of eligible actions of each group in each eligible set."""
        eligible, groups = log.eligible_choices(0), range(int(self.group_of.max()) + 1)
        return np.stack([eligible[:, self.group_of == one].sum(axis=1) for one in groups], axis=1)


def action_groups(log: Log, seed: int) -> ActionGroups | None:
    """Return the groups of the actions of a log; None if there are none."""
    index = group_index(log.schema)
    return None if index is None else ActionGroups(log, index, seed)


class TunedEstimator(NamedTuple):
    """An estimator with all that it chooses from the data, by which batches are summed up.

    ``adjustment`` is the one by covariates, if the log has any and the estimator relies on weights,
    and ``plain`` that of the terms without a threshold.
    """

    estimator: OffPolicyEstimator
    adjustment: Adjustment | None = None
    plain: Adjustment | None = None

    @classmethod
    def of(cls, estimator: OffPolicyEstimator, about: Evidence) -> "TunedEstimator":
        """Return an estimator that is tuned to the evidence about a policy."""
        found = cls(estimator.tuned(about))
        covariates, weight = about.covariates, about.weight
        if covariates is None or not estimator.uses_weights or estimator.short == "replay":
            return found
        terms, sampling = found.terms(about), about.sampling_weight
        plain = terms.without_threshold
        return found._replace(
            adjustment=Adjustment.of(terms, weight, covariates, sampling),
            plain=None if plain is None else Adjustment.of(plain, weight, covariates, sampling),
        )

    def terms(self, about: Evidence) -> Terms:
        """Return the terms of some rows; those of the whole log if the rows are a sample of it."""
        found, sampling = self.estimator.terms(about), about.sampling_weight
        if sampling is not None:
            found = sampled(found, sampling)
        covariates, weight = about.covariates, about.weight
        if self.adjustment is None or covariates is None:
            return found
        plain = found.without_threshold
        if plain is not None and self.plain is not None:
            plain = self.plain.adjusted(plain, weight, covariates, sampling)
            found = found._replace(without_threshold=plain)
        return self.adjustment.adjusted(found, weight, covariates, sampling)


def tuned_terms(estimator: OffPolicyEstimator, about: Evidence) -> Terms:
    """Return the terms of an estimator that is tuned to these rows."""
    return TunedEstimator.of(estimator, about).terms(about)


PROBABILITIES_PER_PART = 1 << 22
"""About this many probabilities are in memory together: 32 MB."""
DRAWS = 32
"""Actions drawn from the policy in each row if joint actions are not listed. The estimators average
over rows, so that few draws per row are enough."""
NUMBERS_PER_DRAW = 64
"""Numbers that one drawn action is assumed to take in memory, when rows are divided into parts."""
MOST_KEPT = 1 << 24
"""Up to this many numbers the features of all rows are kept for the next policy: 128 MB."""


class PartModels(NamedTuple):
    """What reward models say about a part of the rows, whatever the policy.

    ``folds`` are each model with the rows that it was fitted without, and their features, and
    ``predicted [n]`` the predicted rewards of the actions of the log.
    """

    folds: list[tuple[FoldModel, Integers, Floats]]
    predicted: Floats


class LogFacts(NamedTuple):
    """What one batch does not know about its log.

    ``bounds`` are the lowest and the highest possible reward, or observed one, and ``untaken`` says
    for each slot which choices no evaluated row took.
    """

    bounds: tuple[float, float] | None
    untaken: list[Booleans]


class LoggedEvidence:
    """A log on which policies are evaluated, with all that is the same for every policy.

    ``numbers [n]`` are the numbers of these rows in the log that the caller has. The others
    are models of the rewards (``model_choice``), cross-fitted so that every row is predicted by a
    model fitted without it, the propensities of each slot (``slot_propensity [n, S]``, None for
    plain arms; ``slots_estimated`` says whether a model estimated them), and groups of actions.
    What was fitted to these rows is applied to others by ``of_batch``. ``by_number`` says that the
    folds of a row's decisions depend on its number alone, as other batches of a log need it.
    """

    def __init__(
        self,
        log: Log,
        seed: int = 0,
        reward_model: Any = None,
        numbers: Integers | None = None,
        by_number: bool = False,
    ) -> None:
        self._by_number = by_number
        self._seed, self.bounds = seed, log.problem.scale.bounds
        self._set_rows(log, np.arange(len(log)) if numbers is None else numbers)
        log = self.log
        # The log may have choices that are no longer active: policies give them probability 0.
        menu = log.schema.menu.revived
        self._space: Space = menu.space(menu.active)
        self.model_choice = chosen_models(log, reward_model, seed)
        self.fold = folds_of(log)
        self._rng = np.random.default_rng(seed)
        self._slots, self.groups = SlotPropensities(log, seed), action_groups(log, seed)
        self.slot_propensity, self.slots_estimated = self._slots.of(log), self._slots.estimated
        self.untaken = [
            np.bincount(log.action[:, slot].astype(np.int64), minlength=len(one.choices)) == 0
            for slot, one in enumerate(log.schema.menu.slots)
        ]

    def _set_rows(self, log: Log, numbers: Integers) -> None:
        if log.count is not None and log.cluster is None and log.fold is None:
            log, _, number = divided_by_fold(log, FOLDS, numbers if self._by_number else None)
            numbers = numbers if number is None else numbers[number]
        self.log, self.numbers = log, numbers
        self._parts: dict[tuple[int, int], PartModels] = {}

    def of_batch(
        self, log: Log, numbers: Integers, fold: NDArray[np.int8], known: "LogFacts"
    ) -> Self:
        """Return the evidence of other rows, with the models that were fitted to these.

        ``numbers [n]`` are those of the rows in the whole log, and ``fold [n]`` is the model that
        predicts each row.
        """
        part = copy.copy(self)
        part._set_rows(log, numbers)
        part.fold = fold if part.log.fold is None else part.log.fold
        part.bounds, part.untaken = known.bounds, known.untaken
        part.slot_propensity = self._slots.of(part.log)
        part._rng = np.random.default_rng([self._seed, int(numbers[0])])
        for cached in ("_eligible_masks", "_group_propensity"):
            part.__dict__.pop(cached, None)
        return part

    def about(self, learned: TrainedPolicy | TargetPolicy) -> Evidence:
        """Return the evidence about a learned policy, or about a policy of another kind."""
        if isinstance(learned, TrainedPolicy):
            check_same_schema(learned, self.log)
        else:
            learned = learned.in_rows(self.log, self.numbers)
        if not isinstance(learned, TrainedPolicy) and not self._can_list():
            raise InputError(
                f"this log has {self._space.size} joint actions or real-valued ones; a "
                f"policy given by all its probabilities can have up to {MOST_LISTED} joint "
                "actions: evaluate a policy by name"
            )
        if isinstance(learned, TrainedPolicy) and not self._can_list():
            parts = [self._by_drawing(learned, *rows) for rows in self._rows()]
        else:
            parts = [self._by_listing(learned, *rows) for rows in self._rows()]
        found = Evidence.joined(parts)
        if self.log.session is not None:
            found = found._replace(sessions=trajectory_weights(found.weight, self.log.session))
        return self._with_columns(found)

    def about_logging_policy(self) -> Evidence:
        """Return the evidence about the policy that wrote the log: all weights are 1."""
        log = self.log
        predicted = np.concatenate([self._models(*part).predicted for part in self._rows()])
        ones = np.ones(len(log))
        slots = None if self.slot_propensity is None else np.ones(log.action.shape)
        return self._with_columns(
            Evidence(log.reward, ones, log.propensity, predicted, predicted, slots, self.bounds)
        )

    def _with_columns(self, found: Evidence) -> Evidence:
        """Return the evidence with what is the same for every policy."""
        log = self.log
        return found._replace(
            counts=log.count, sampling_weight=log.sampling_weight, covariates=log.covariates
        )

    def never_taken(self) -> list[str]:
        """Return the names of the choices that no row of the log took."""
        return [
            choice.name
            for slot, untaken in zip(self.log.schema.menu.slots, self.untaken, strict=True)
            for choice, one in zip(slot.choices, untaken, strict=True)
            if one
        ]

    def _can_list(self) -> bool:
        return not self._space.reals and self._space.size <= MOST_LISTED

    def _rows(self) -> Iterator[tuple[Columns, slice]]:
        """Yield the rows in parts whose probabilities fit into memory, with their place."""
        size = self._space.size if self._can_list() else DRAWS * NUMBERS_PER_DRAW
        step, first = max(PROBABILITIES_PER_PART // size, 1), 0
        for part in self.log.parts:
            for begin in range(0, len(part.reward), step):
                piece = part.rows(slice(begin, begin + step))
                yield piece, slice(first + begin, first + begin + len(piece.reward))
            first += len(part.reward)

    def _models(self, part: Columns, rows: slice) -> PartModels:
        """Return what the models say about a part; it is kept if the rows are not very many."""
        known = self._parts.get((rows.start, rows.stop))
        if known is not None:
            return known
        powers = polynomial_features(self.log, part.action)
        folds, predicted, width = [], np.empty(len(part.reward)), 1
        for number, model in enumerate(self.model_choice.models):
            fold = np.flatnonzero(self.fold[rows] == number)
            features = model.features(part.context[fold])
            predicted[fold] = model.predict(features, part.action[fold], powers[fold])
            folds.append((model, fold, features))
            width = features.shape[1]
        if len(self.log) * width > MOST_KEPT:
            self._parts.clear()
        found = PartModels(folds, predicted)
        self._parts[rows.start, rows.stop] = found
        return found

    def _by_listing(
        self, learned: TrainedPolicy | TargetPolicy, part: Columns, rows: slice
    ) -> Evidence:
        """Return the evidence of a part from the probabilities of all joint actions."""
        if isinstance(learned, TrainedPolicy):
            table = self._learned_table(learned, part, rows)
        else:
            table = learned.probabilities(self.log.schema, part.context, self.numbers[rows])
            if len(self.log.eligible_sets) > 1:
                table = among_eligible(table, self._eligible_masks[self.log.eligible_set[rows]])
        index = self._space.index(part.action.astype(np.int64))
        probability = table[np.arange(len(index)), index]
        slot_tables = tables_of_slots(table, self._space.choices)
        expected = np.empty(len(index))
        for model, fold, features in self._models(part, rows).folds:
            of_fold = [slot_table[fold] for slot_table in slot_tables]
            expected[fold] = model.expected(features, table[fold], of_fold)
        slot_probability = slot_probabilities(slot_tables, part.action)
        unsupported = unsupported_share(slot_tables, self.untaken)
        found = self._evidence(part, rows, probability, expected, slot_probability, unsupported)
        if self.groups is None:
            return found
        group_weight = self.groups.probability(table, index) / self._group_propensity[rows]
        return found._replace(group_weight=group_weight)

    def _learned_table(self, learned: TrainedPolicy, part: Columns, rows: slice) -> Floats:
        """Return the probabilities ``[n, M]``; in each row the policy decides among its set."""
        sets = self.log.eligible_sets
        if len(sets) == 1:
            return learned.probabilities(part.context)
        numbers = self.log.eligible_set[rows]
        table = np.empty((len(part.reward), self._space.size))
        for number in np.unique(numbers):
            same = numbers == number
            table[same] = learned.probabilities(part.context[same], sets[number])
        return table

    def _by_drawing(self, learned: TrainedPolicy, part: Columns, rows: slice) -> Evidence:
        """Return the evidence of a part from the density of its actions and from drawn actions.

        The draws give the expected reward, and the probability of each slot's choice.
        """
        if len(self.log.eligible_sets) > 1:
            size = "real-valued parts" if self._space.reals else f"{self._space.size} joint actions"
            raise InputError(
                f"this log has eligible choices and {size}; eligible choices work for up to "
                f"{MOST_LISTED} joint actions without real-valued parts: leave the column "
                "of eligible choices out"
            )
        policy, state = learned.policy, learned.model.state
        context = learned.model.standardization.apply(part.context.astype(np.float64))
        probability = _probability_of(learned, context, part.action, self._space)
        count = len(part.reward)
        drawn = policy.act(state, np.repeat(context, DRAWS, axis=0)[None], self._rng).action[0]
        for slot, indices in enumerate(learned.model.active):
            drawn[:, slot] = np.array(indices)[drawn[:, slot].astype(np.int64)]
        powers = polynomial_features(self.log, drawn)
        predicted = np.empty(count * DRAWS)
        for model, fold, features in self._models(part, rows).folds:
            each = (fold[:, None] * DRAWS + np.arange(DRAWS)).ravel()
            repeated = np.repeat(features, DRAWS, axis=0)
            predicted[each] = model.predict(repeated, drawn[each], powers[each])
        slots = len(self.untaken)
        choices = drawn.reshape(count, DRAWS, -1)[:, :, :slots].astype(np.int64)
        slot_probability = (choices == part.action[:, None, :slots]).mean(axis=1)
        unsupported = np.zeros((count, DRAWS), dtype=bool)
        for slot, untaken in enumerate(self.untaken):
            unsupported |= untaken[choices[..., slot]]
        expected = predicted.reshape(count, DRAWS).mean(axis=1)
        return self._evidence(
            part, rows, probability, expected, slot_probability, unsupported.mean(axis=1)
        )

    def _evidence(
        self,
        part: Columns,
        rows: slice,
        probability: Floats,
        expected: Floats,
        slot_probability: Floats,
        unsupported: Floats,
    ) -> Evidence:
        slots = self.slot_propensity
        return Evidence(
            reward=part.reward,
            weight=probability / self.log.propensity[rows],
            probability=probability,
            predicted=self._models(part, rows).predicted,
            expected=expected,
            slot_weight=None if slots is None else slot_probability / slots[rows],
            bounds=self.bounds,
            unsupported=unsupported,
        )

    @cached_property
    def _group_propensity(self) -> Floats:
        return np.ones(0) if self.groups is None else self.groups.propensity(self.log)

    @cached_property
    def _eligible_masks(self) -> Booleans:
        """Which of the M joint actions are in each set of eligible choices, ``[sets, M]``."""
        masks = []
        for eligible in self.log.eligible_sets:
            mask = np.ones(1, dtype=bool)
            for indices, size in zip(eligible, self._space.choices, strict=True):
                mask = (mask[:, None] & np.isin(np.arange(size), indices)).ravel()
            masks.append(mask)
        return np.stack(masks)


def _probability_of(
    learned: TrainedPolicy, context: Floats, action: NDArray[Any], space: Space
) -> Floats:
    """Return the policy's probability of the action of each row.

    The probability is 0 if the policy does not know one of the choices.
    """
    known, indices = reindexed(action, learned.model.active)
    probability = np.zeros(len(action))
    if known.any():
        actions = indices.astype(space.dtype)[None]
        log_prob = learned.policy.log_prob(learned.model.state, context[known][None], actions)
        probability[known] = np.exp(log_prob[0])
    return probability
