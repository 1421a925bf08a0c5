"""What estimates and checks of a log need, as sums that add up over batches."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.evaluation.batches import PartedColumns, Unit, uniform_of
from submax.evaluation.diagnostics import (
    FEWEST_TAKEN,
    Diagnostics,
    PropensityCalibration,
    errors_from_one,
)
from submax.evaluation.estimates import LOGGING_POLICY, Overlap
from submax.evaluation.estimators import (
    SMALLEST_MEAN,
    Evidence,
    OffPolicyEstimator,
    make_off_policy,
)
from submax.evaluation.evidence import LoggedEvidence, PolicyEvidence
from submax.evaluation.intervals import Terms
from submax.evaluation.log import Log
from submax.evaluation.overview import ChoiceFacts
from submax.evaluation.reward_models import FOLDS
from submax.schema.actions import ChoiceIndices
from submax.schema.schema import Schema


class Moments(NamedTuple):
    """Σ x, Σ x xᵀ and Σ x ⊗ x ⊗ x over the rows x of a table with K columns.

    From them follow the mean, the variance and the third cumulant of every linear combination of
    the columns.
    """

    rows: int
    first: Floats
    second: Floats
    third: Floats

    @classmethod
    def of(cls, columns: Sequence[Floats | None], count: int) -> "Moments":
        """Return the sums over ``count`` rows; a column that is None is 1 in every row.

        Products with 1 are sums of a lower order, which are not computed again.
        """
        varying = [one for one in columns if one is not None]
        width = len(varying)
        # Column 0 is the constant 1, so that sums of lower orders are part of those of the third.
        sums = np.empty((width + 1, width + 1, width + 1))
        sums[0, 0, 0] = count
        for one, column in enumerate(varying, start=1):
            _fill(sums, (0, 0, one), float(column.sum()))
            for two, other in enumerate(varying[one - 1 :], start=one):
                product = column * other
                _fill(sums, (0, one, two), float(product.sum()))
                for three, last in enumerate(varying[two - 1 :], start=two):
                    _fill(sums, (one, two, three), float(product @ last))
        numbers = np.cumsum([one is not None for one in columns])
        place = np.where([one is None for one in columns], 0, numbers)
        third = sums[np.ix_(place, place, place)]
        return cls(count, sums[0, 0, place], sums[0][np.ix_(place, place)], third)

    def __add__(self, other: "Moments") -> "Moments":  # type: ignore[override]  # not of tuples
        return Moments(
            self.rows + other.rows,
            self.first + other.first,
            self.second + other.second,
            self.third + other.third,
        )

    def central(self, weights: Floats) -> tuple[float, float, float]:
        """Return mean, variance and third cumulant of the combination Σ_k w_k x_k, per row.

        >>> Moments.of([np.array([0.0, 1.0, 5.0]), None], 3).central(np.array([1.0, 3.0]))[0]
        5.0
        """
        mean = float(weights @ self.first) / self.rows
        square = float(weights @ self.second @ weights) / self.rows
        cube = float(np.einsum("ijk,i,j,k->", self.third, weights, weights, weights)) / self.rows
        variance = max(square - mean**2, 0.0)
        return mean, variance, cube - 3 * mean * square + 2 * mean**3


def _fill(sums: Floats, place: tuple[int, int, int], value: float) -> None:
    """Set an element of a symmetric table, in all orders of its three numbers."""
    for one in permutations(place):
        sums[one] = value


def two_points(mean: float, variance: float, third: float) -> tuple[Floats, Floats]:
    """Return two values and their probabilities with this mean, variance and third cumulant.

    Intervals depend on the terms of an estimate only through these numbers, so that two terms, each
    counted as often as its probability says, have the interval of all of them.

    >>> values, chance = two_points(1.0, 4.0, 20.0)
    >>> np.round([chance @ values, chance @ (values - 1) ** 2, chance @ (values - 1) ** 3], 9)
    array([ 1.,  4., 20.])
    """
    if not variance > 0:
        return np.array([mean, mean]), np.array([0.5, 0.5])
    deviation = float(np.sqrt(variance))
    skewness = third / deviation**3
    root = float(np.hypot(2.0, skewness))
    # The rarer of both values, without the cancellation of (1 - skewness / root) / 2.
    rare = 2.0 / (root * (root + abs(skewness)))
    far, near = deviation * np.sqrt((1 - rare) / rare), deviation * np.sqrt(rare / (1 - rare))
    sign = 1.0 if skewness >= 0 else -1.0
    return mean + sign * np.array([-near, far]), np.array([1 - rare, rare])


class TermSums(NamedTuple):
    """Sums over the columns u, z of an estimate and u, z of its baseline.

    A term of an estimate is y / z̄ with y = u + c z, where c is the ``centre``: sums of terms that
    are measured from a number near their mean lose no digits. z is 1 if the estimate is a mean
    (``ratio`` is then False). ``ends`` are the smallest and largest possible term of a mean, and
    the smallest and largest z of a ratio; None if only observed terms are known, which are
    ``observed``; ``apart`` are the observed differences from the baseline. ``blocks [B, 5]`` are
    the columns and the number of rows in each block of the bootstrap.
    """

    moments: Moments
    centre: float
    ratio: bool
    base_ratio: bool
    ends: tuple[float, float] | None
    base_ends: tuple[float, float] | None
    observed: tuple[float, float]
    apart: tuple[float, float]
    blocks: Floats | None

    @classmethod
    def of(
        cls, terms: Terms, baseline: Terms, centre: float, block: Integers | None, blocks: int
    ) -> "TermSums":
        """Return the sums of the terms of some rows; ``block [n]`` is the block of each row."""
        table = [*_columns(terms, centre), *_columns(baseline, centre)]
        sums = None
        if block is not None:
            # A column of ones counts the rows of a block.
            columns = [np.bincount(block, one, minlength=blocks) for one in (*table, None)]
            sums = np.stack(columns, axis=1).astype(np.float64)
        return cls(
            Moments.of(table, len(terms.numerator)),
            centre,
            terms.denominator is not None,
            baseline.denominator is not None,
            _ends(terms),
            _ends(baseline),
            _range(terms.numerator),
            _range(terms.numerator - baseline.numerator),
            sums,
        )

    def __add__(self, other: "TermSums") -> "TermSums":  # type: ignore[override]  # not of tuples
        return self._replace(
            moments=self.moments + other.moments,
            ends=_wider(self.ends, other.ends),
            base_ends=_wider(self.base_ends, other.base_ends),
            observed=_wider(self.observed, other.observed) or self.observed,
            apart=_wider(self.apart, other.apart) or self.apart,
            blocks=None
            if self.blocks is None or other.blocks is None
            else self.blocks + other.blocks,
        )

    def terms(self, interval: str, bounds: tuple[float, float], of_baseline: bool = False) -> Terms:
        """Return few terms that have the value and the intervals of all terms.

        ``bounds`` are the lowest and the highest reward.
        """
        place = 2 if of_baseline else 0
        ratio = self.base_ratio if of_baseline else self.ratio
        value, mean = self._value(place)
        reach = self._reach(place, bounds)
        if interval == "bernstein" and reach is None:
            reach = self.observed
        if self.blocks is not None:
            u, z = self.blocks[:, place], self.blocks[:, place + 1]
            above = u + self.centre * z
            return Terms(above, z if ratio else self.blocks[:, 4], reach)
        if not mean > 0:
            return Terms(np.full(2, np.nan), None, reach, counts=self._counts(np.full(2, 0.5)))
        _, variance, third = self.moments.central(self._influence(place))
        values, chance = two_points(value, variance, third)
        return Terms(values, None, reach, counts=self._counts(chance))

    def difference(self, interval: str, bounds: tuple[float, float]) -> Terms:
        """Return few terms that have the value and the intervals of the paired difference."""
        reach, base = self._reach(0, bounds), self._reach(2, bounds)
        ends = None if reach is None or base is None else (reach[0] - base[1], reach[1] - base[0])
        if interval == "bernstein" and ends is None:
            ends = self.apart
        value = self._value(0)[0] - self._value(2)[0]
        weights = self._influence(0) - self._influence(2)
        if self.blocks is not None:
            of_rows = self.blocks[:, 4]
            spread = self.blocks[:, :4] @ weights
            # The combination has a mean of its own, which is replaced by the difference.
            shift = value - float(weights @ self.moments.first) / self.moments.rows
            return Terms(spread + shift * of_rows, of_rows, ends)
        _, variance, third = self.moments.central(weights)
        values, chance = two_points(value, variance, third)
        return Terms(values, None, ends, counts=self._counts(chance))

    def error_of_difference(self) -> float:
        """Return the standard error of the paired difference."""
        weights = self._influence(0) - self._influence(2)
        _, variance, _ = self.moments.central(weights)
        count = self.moments.rows
        return float(np.sqrt(variance / (count - 1))) if count > 1 else float("inf")

    def _counts(self, chance: Floats) -> Floats:
        counts: Floats = self.moments.rows * chance
        return counts

    def _value(self, place: int) -> tuple[float, float]:
        """Return the estimate, and the mean of its denominator."""
        above, below = self.moments.first[place : place + 2]
        mean = float(below) / self.moments.rows
        return (self.centre + float(above / below) if below > 0 else float("nan")), mean

    def _influence(self, place: int) -> Floats:
        """Return the weights of the columns in v + (y − v z) / z̄, without the constant v."""
        value, mean = self._value(place)
        weights = np.zeros(4)
        if mean > 0:
            weights[place], weights[place + 1] = 1 / mean, (self.centre - value) / mean
        return weights

    def _reach(self, place: int, bounds: tuple[float, float]) -> tuple[float, float] | None:
        ends, ratio = (self.ends, self.ratio) if place == 0 else (self.base_ends, self.base_ratio)
        if ends is None or not ratio:
            return ends
        value, mean = self._value(place)
        products = np.outer([*ends, 0.0], [bounds[0] - value, bounds[1] - value])
        mean = max(mean, SMALLEST_MEAN)
        return value + float(products.min()) / mean, value + float(products.max()) / mean


def _columns(terms: Terms, centre: float) -> tuple[Floats, Floats | None]:
    """Return the columns u and z; z is None if it is 1."""
    if terms.denominator is None:
        return terms.numerator - centre, None
    return terms.numerator - centre * terms.denominator, terms.denominator


def _ends(terms: Terms) -> tuple[float, float] | None:
    if terms.denominator is not None:
        return float(terms.denominator.min()), float(terms.denominator.max())
    return terms.reach


def _range(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _wider(
    one: tuple[float, float] | None, other: tuple[float, float] | None
) -> tuple[float, float] | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one[0], other[0]), max(one[1], other[1])


class Blocks(NamedTuple):
    """The block of the bootstrap of each row, ``number [n]``, of ``total`` blocks."""

    number: Integers | None
    total: int


class PolicySums(NamedTuple):
    """Sums about a policy, and for each estimator those of its terms.

    Sums of two parts of a log are added up, so that a log that does not fit into memory is
    evaluated part by part. ``moments`` are those of the importance weights w minus 1, and of
    w (r − q̂) with the reward r and the predicted reward q̂. ``by_reward`` is the sum of the
    weights of rows with each of the usual rewards. ``plain`` are the sums of the terms without a
    threshold, for estimators that have one.
    """

    moments: Moments
    largest: float
    unsupported: float
    by_reward: Floats
    overlap: Overlap
    estimates: dict[str, TermSums]
    plain: dict[str, TermSums]

    @classmethod
    def of(
        cls,
        about: PolicyEvidence,
        terms: Mapping[str, Terms],
        baseline: Mapping[str, Terms],
        centre: float,
        blocks: Blocks,
        usual: Floats,
    ) -> "PolicySums":
        """Return the sums over the rows of a part.

        ``baseline`` has the terms that are subtracted from those of each estimator, ``centre`` is
        a number near the rewards, and ``usual`` are the rewards that occur often, sorted.
        """
        evidence = about.evidence
        plain = {
            label: _sums(one.without_threshold, _plain(baseline[label]), centre, blocks)
            for label, one in terms.items()
            if one.without_threshold is not None
        }
        return cls(
            Moments.of([evidence.weight - 1, _residual(evidence)], len(evidence.weight)),
            float(evidence.weight.max()),
            float(about.unsupported.sum()),
            _by_reward(evidence, usual),
            Overlap.of(evidence.weight),
            {label: _sums(one, baseline[label], centre, blocks) for label, one in terms.items()},
            plain,
        )

    def __add__(self, other: "PolicySums") -> "PolicySums":  # type: ignore[override]  # no tuple
        return PolicySums(
            self.moments + other.moments,
            max(self.largest, other.largest),
            self.unsupported + other.unsupported,
            self.by_reward + other.by_reward,
            self.overlap.joined(other.overlap),
            {label: one + other.estimates[label] for label, one in self.estimates.items()},
            {label: one + other.plain[label] for label, one in self.plain.items()},
        )

    def diagnostics(self, usual: Floats) -> Diagnostics:
        """Return the diagnostics of the weights over all rows."""
        count = self.moments.rows
        mean, variance, _ = self.moments.central(np.array([1.0, 0.0]))
        total = count * (1 + mean)
        square = count * (variance + (1 + mean) ** 2)
        most = int(np.argmax(self.by_reward))
        share = float(self.by_reward[most]) / total if total > 0 else 1.0
        effective = total**2 / square if square > 0 else 0.0
        return Diagnostics(
            rows=count,
            effective=effective,
            largest=self.largest,
            largest_share=self.largest / total if total > 0 else 0.0,
            mean_weight=1 + mean,
            mean_error=float(np.sqrt(variance / count)),
            unsupported=self.unsupported / count,
            effective_rewards=(1 - share) * effective,
            usual=float(usual[most]),
        )

    def distance_from_one(self, largest: float) -> float:
        """Return how many standard errors the mean weight is from 1."""
        mean, variance, third = self.moments.central(np.array([1.0, 0.0]))
        values, chance = two_points(1 + mean, variance, third)
        return errors_from_one(values, largest, self.moments.rows * chance)

    def residual(self) -> tuple[float, float]:
        """Return the mean of w (r − q̂) and its standard error."""
        mean, variance, _ = self.moments.central(np.array([0.0, 1.0]))
        return mean, float(np.sqrt(variance / self.moments.rows))


def _sums(terms: Terms, baseline: Terms, centre: float, blocks: Blocks) -> TermSums:
    return TermSums.of(terms, baseline, centre, blocks.number, blocks.total)


def _plain(terms: Terms) -> Terms:
    return terms if terms.without_threshold is None else terms.without_threshold


def _residual(evidence: Evidence) -> Floats:
    found: Floats = evidence.weight * (evidence.reward - evidence.predicted)
    return found


def _by_reward(evidence: Evidence, usual: Floats) -> Floats:
    """Return the sum of the weights of the rows with each usual reward."""
    place = np.minimum(np.searchsorted(usual, evidence.reward), len(usual) - 1)
    same = usual[place] == evidence.reward
    sums = np.bincount(place[same], evidence.weight[same], minlength=len(usual))
    return sums.astype(np.float64)


EXTREMES = 2
"""Lowest and highest rewards that are kept: the outlier, and the next one."""


class LogSums(NamedTuple):
    """Sums over the rows of a log of plain actions, for each of its M choices.

    ``choices [M, 6]`` are, for each choice: rows that took it, their rewards, rows in which it was
    eligible, Σ 1 / p and Σ 1 / p² over the rows that took it, and the largest 1 / p among the rows
    in which it was eligible. ``rewards`` are the moments of the rewards minus a number near their
    mean, ``ends`` the lowest and highest rewards, and ``propensity`` is the sum of all
    propensities; ``by_set`` has the lowest and highest propensity for each set of eligible choices.
    """

    choices: Floats
    rewards: Moments
    ends: Floats
    propensity: float
    by_set: dict[ChoiceIndices, tuple[float, float]]

    @classmethod
    def of(cls, log: Log, centre: float) -> "LogSums":
        """Return the sums over the rows of a part."""
        chosen = log.action[:, 0].astype(np.int64)
        eligible = log.eligible_choices(0)
        size = eligible.shape[1]
        score = 1.0 / log.propensity
        in_sets = np.bincount(log.eligible_set, minlength=len(eligible))
        largest = np.zeros(len(eligible))
        np.maximum.at(largest, log.eligible_set, score)
        low, high = np.full(len(eligible), np.inf), np.zeros(len(eligible))
        np.minimum.at(low, log.eligible_set, log.propensity)
        np.maximum.at(high, log.eligible_set, log.propensity)
        columns = [
            np.bincount(chosen, minlength=size),
            np.bincount(chosen, log.reward, minlength=size),
            in_sets @ eligible,
            np.bincount(chosen, score, minlength=size),
            np.bincount(chosen, score**2, minlength=size),
            (largest[:, None] * eligible).max(axis=0),
        ]
        present = {
            one: (float(low[place]), float(high[place]))
            for place, one in enumerate(log.eligible_sets)
            if in_sets[place]
        }
        moments = Moments.of([log.reward - centre], len(log))
        return cls(
            np.stack(columns, axis=1).astype(np.float64),
            moments,
            _extremes(log.reward),
            float(log.propensity.sum()),
            present,
        )

    def __add__(self, other: "LogSums") -> "LogSums":  # type: ignore[override]  # not of tuples
        choices = self.choices + other.choices
        choices[:, 5] = np.maximum(self.choices[:, 5], other.choices[:, 5])
        by_set = dict(self.by_set)
        for one, (low, high) in other.by_set.items():
            before = by_set.get(one, (np.inf, 0.0))
            by_set[one] = (min(before[0], low), max(before[1], high))
        return LogSums(
            choices,
            self.rewards + other.rewards,
            _extremes(np.concatenate([self.ends, other.ends])),
            self.propensity + other.propensity,
            by_set,
        )

    def propensities(self) -> tuple[float, float, float]:
        """Return the lowest, the mean and the highest propensity."""
        lows, highs = zip(*self.by_set.values(), strict=True)
        return min(lows), self.propensity / self.rewards.rows, max(highs)

    def facts(self, schema: Schema) -> list[ChoiceFacts]:
        """Return the facts about every choice, the most frequent one first."""
        slot = schema.menu.slots[0]
        found = []
        for index in np.argsort(-self.choices[:, 0], kind="stable"):
            rows, earned = self.choices[index, :2]
            mean = float(earned / rows) if rows else float("nan")
            name = slot.choices[index].name
            checked = self._calibration(int(index), slot.name, name)
            found.append(ChoiceFacts(slot.name, name, int(rows), mean, checked))
        return found

    def _calibration(self, index: int, slot: str, name: str) -> PropensityCalibration | None:
        rows, _, count, total, square, largest = self.choices[index]
        if rows < FEWEST_TAKEN:
            return None
        ratio = float(total / count)
        variance = max(float(square / count) - ratio**2, 0.0)
        values, chance = two_points(ratio, variance, 0.0)
        z = errors_from_one(values, float(largest), count * chance)
        return PropensityCalibration(slot, name, ratio, z, float(np.sqrt(variance / count)))

    def reward_terms(self, centre: float) -> tuple[Floats, Floats]:
        """Return few rewards with their counts, which have the mean, variance and ends of all."""
        count, inner = self.rewards.rows, self.ends
        rest = count - len(inner)
        if rest < 2:
            return inner, np.ones(len(inner))
        mean = centre + (float(self.rewards.first[0]) - float((inner - centre).sum())) / rest
        square = float(self.rewards.second[0, 0]) - float(((inner - centre) ** 2).sum())
        variance = max(square / rest - (mean - centre) ** 2, 0.0)
        values, chance = two_points(mean, variance, 0.0)
        within = np.clip(values, inner[EXTREMES - 1], inner[-EXTREMES])
        return np.concatenate([inner, within]), np.concatenate([np.ones(len(inner)), rest * chance])


def _extremes(reward: Floats) -> Floats:
    """Return the lowest and the highest rewards, sorted; all of them if there are few."""
    if len(reward) <= 2 * EXTREMES:
        return np.sort(reward)
    order = np.partition(reward, [EXTREMES - 1, len(reward) - EXTREMES])
    return np.sort(np.concatenate([order[:EXTREMES], order[-EXTREMES:]]))


SPLIT_SEED, FOLD_SEED = 1, 2
"""Added to the seed, so that splits and folds are independent of the sample."""


TUNED = ("threshold", "shrinkage")
"""Parameters of estimators that are chosen from the data if they are None."""


class Split(NamedTuple):
    """Which rows policies learn from: the first ``boundary`` ones, or a random ``share``."""

    boundary: int
    share: float
    random: bool
    seed: int

    def evaluated(self, number: Integers) -> Booleans:
        """Return which rows, by their numbers in the log, are evaluated."""
        if self.random:
            return uniform_of(number, self.seed + SPLIT_SEED) >= self.share
        return number >= self.boundary


class Plan(NamedTuple):
    """The policies and estimators of an evaluation, and all that was fitted to the sample.

    ``logged`` is the evidence of the evaluated rows of the sample, of which ``numbers`` are the
    numbers in the log and ``folds`` the folds of the reward models. ``bounds`` are the lowest and
    highest reward, ``usual`` the most frequent ones, and ``blocks`` is the number of rows of a
    block of the bootstrap; 0 without one.
    """

    reading: Mapping[str, Any]
    columns: list[str]
    split: Split
    logged: LoggedEvidence
    numbers: Integers
    folds: NDArray[np.int8]
    untaken: list[Booleans]
    targets: dict[str, Any]
    estimators: dict[str, dict[str, OffPolicyEstimator]]
    baseline: str
    bounds: tuple[float, float]
    usual: Floats
    centre: float
    block_rows: int
    blocks: int

    def fold_of(self, number: Integers) -> NDArray[np.int8]:
        """Return the model that predicts each row: for rows of the sample one fitted without it."""
        place = np.minimum(np.searchsorted(self.numbers, number), len(self.numbers) - 1)
        drawn = (uniform_of(number, FOLD_SEED) * FOLDS).astype(np.int8)
        found: NDArray[np.int8] = np.where(
            self.numbers[place] == number, self.folds[place], drawn
        ).astype(np.int8)
        return found


class UnitSums(NamedTuple):
    """The sums over the evaluated rows of a unit, of the log and of each policy."""

    log: LogSums
    policies: dict[str, PolicySums]

    def __add__(self, other: "UnitSums") -> "UnitSums":  # type: ignore[override]  # not of tuples
        policies = {name: one + other.policies[name] for name, one in self.policies.items()}
        return UnitSums(self.log + other.log, policies)


def evaluate_unit(unit: Unit, first: int, plan: Plan) -> UnitSums | None:
    """Return the sums over the evaluated rows of a unit; None if it has none.

    ``first`` is the number of the first row of the unit in the log.
    """
    total: UnitSums | None = None
    for log, _ in unit.logs(plan.reading, plan.columns):
        number = np.arange(first, first + len(log))
        first += len(log)
        chosen = plan.split.evaluated(number)
        if chosen.any():
            found = _of_part(log.rows(chosen), number[chosen], plan)
            total = found if total is None else total + found
    return total


def _of_part(log: Log, number: Integers, plan: Plan) -> UnitSums:
    part = plan.logged.of_part(log, number, plan.fold_of(number), plan.untaken)
    block = None
    if plan.block_rows:
        block = (number - plan.split.boundary) // plan.block_rows
    blocks = Blocks(block, plan.blocks)
    about_log = _bounded(part.about_logging_policy(), plan)
    mean = {"mean": make_off_policy("ips").terms(about_log.evidence)}
    rest = (plan.centre, blocks, plan.usual)
    found = {LOGGING_POLICY: PolicySums.of(about_log, mean, mean, *rest)}
    targets = {
        name: one.in_rows(log, number) if isinstance(one, PartedColumns) else one
        for name, one in plan.targets.items()
    }
    labels = next(iter(plan.estimators.values()))
    base: dict[str, Terms] = dict.fromkeys(labels, mean["mean"])
    if plan.baseline != LOGGING_POLICY:
        base = _terms(plan, plan.baseline, _bounded(part.about(targets[plan.baseline]), plan))
    for name, target in targets.items():
        about = _bounded(part.about(target), plan)
        terms = base if name == plan.baseline else _terms(plan, name, about)
        found[name] = PolicySums.of(about, terms, base, *rest)
    return UnitSums(LogSums.of(log, plan.centre), found)


def _terms(plan: Plan, name: str, about: PolicyEvidence) -> dict[str, Terms]:
    estimators = plan.estimators[name].items()
    return {label: one.terms(about.evidence) for label, one in estimators}


def _bounded(about: PolicyEvidence, plan: Plan) -> PolicyEvidence:
    """Return the evidence with the bounds of the rewards of all rows, not only of this part."""
    return about._replace(evidence=about.evidence._replace(bounds=plan.bounds))
