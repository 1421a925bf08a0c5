"""Rankings: what another policy would have earned with lists of items, position by position."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError, one_line
from submax.evaluation.comparison import Comparison, Overview
from submax.evaluation.diagnostics import (
    SIGNIFICANT_ERRORS,
    ChoiceFacts,
    Diagnostics,
    Overlap,
    errors_from_one,
)
from submax.evaluation.estimates import SLATE, Difference, Estimate, differences_of
from submax.evaluation.evaluator import LOGGING_POLICY
from submax.evaluation.intervals import INTERVALS, ConfidenceInterval
from submax.evaluation.sums import Terms, TermSums, Units, mean
from submax.research.beyond.slate_log import EMPTY, Slates


class RankingEvidence(NamedTuple):
    """The evidence of n slates of K positions about a policy π; arrays are ``[n, K]``.

    ``weight`` is π(a_k | a_1 … a_k−1) / p(a_k | a_1 … a_k−1), 1 at positions that a slate does not
    have (``filled`` is False). ``marginal_weight`` is π(a at k) / p(a at k) of the item a at
    position k. ``placed [n, K, K]`` is π(a at j) for the item at position k and every position j,
    and ``logged_placed`` the same of the logging policy. ``predicted`` is q̂_k(a_k), a prediction of
    Σ_j≥k r_j under π that was fitted to other slates, and ``expected`` its expectation under π
    given the items above. What is not known is None. ``bounds`` are those of one reward, and
    ``counts [n]`` is the number of equal slates, if it is not one.
    """

    reward: Floats
    filled: Booleans
    weight: Floats
    marginal_weight: Floats | None = None
    placed: Floats | None = None
    logged_placed: Floats | None = None
    predicted: Floats | None = None
    expected: Floats | None = None
    bounds: tuple[float, float] | None = None
    counts: Floats | None = None

    def above(self) -> Floats:
        """Return the weight of the items down to each position, Π_j≤k w_j."""
        return np.cumprod(self.weight, axis=1, dtype=np.float64)

    def reach(self, weight: Floats) -> tuple[float, float]:
        """Return the smallest and the largest possible Σ_k w_k r_k of a slate."""
        low, high = self.bounds or (float(self.reward.min()), float(self.reward.max()))
        sums = np.where(self.filled, weight, 0.0).sum(axis=1)
        ends = np.outer([sums.min(), sums.max(), 0.0], [low, high])
        return float(ends.min()), float(ends.max())


class RankingEstimator(ABC):
    """Estimates the expected sum of the rewards of a slate, Σ_k r_k, under another policy.

    ``short`` is its name in tables, and ``assumes`` is what has to be true, in words.
    """

    short: ClassVar[str]
    assumes: ClassVar[str]

    @abstractmethod
    def missing(self, evidence: RankingEvidence) -> str | None:
        """Return what the estimator needs and the evidence does not have; None if nothing."""

    @abstractmethod
    def weights(self, evidence: RankingEvidence) -> Floats:
        """Return the factor of the reward at every position, ``[n, K]``."""

    def terms(self, evidence: RankingEvidence) -> Terms:
        """Return the terms, one for each slate, whose mean is the estimate."""
        weight = self.weights(evidence)
        return Terms(
            (weight * evidence.reward).sum(axis=1),
            reach=evidence.reach(weight),
            counts=evidence.counts,
        )


class RankingPolicy(ABC):
    """Fills the positions of a slate from the top.

    In shapes, n is the number of slates, K that of positions and M that of items.
    """

    @abstractmethod
    def conditional(self, item: Integers) -> Floats:
        """Return the probability of every item at every position, ``[n, K, M]``.

        The probabilities at a position are conditional on the items above it, which are taken from
        the slates ``item [n, K]``.
        """

    @abstractmethod
    def marginal(self, slates: int, positions: int) -> Floats | None:
        """Return the marginal probability of every item at every position.

        ``[n, K, M]``, or ``[1, K, M]`` if it is the same for all slates. None if this would take
        too long to compute.
        """


MOST_SETS = 5000
"""Sets of items above a position over which marginal probabilities are added up; more take long."""


@dataclass(frozen=True, eq=False)
class PlackettLuce(RankingPolicy):
    """p(a at k | above) = exp(s_a) / Σ exp(s_b) over the items b that are not above.

    s are the ``scores [M]``, or ``[n, M]`` with scores for each slate. Equal scores are uniformly
    random rankings; the larger the differences, the nearer to sorting by score.

    Reference: Plackett (1975), The analysis of permutations.
    """

    scores: Floats

    def __post_init__(self) -> None:
        scores = np.atleast_2d(np.asarray(self.scores, dtype=np.float64))
        if scores.ndim != 2 or not np.isfinite(scores).all() or not scores.size:
            raise InputError(
                f"the scores have the shape {scores.shape}; finite numbers [items] or "
                "[slates, items] are allowed: give a score for each item",
                parameter="scores",
            )
        object.__setattr__(self, "scores", scores)

    @property
    def _strength(self) -> Floats:
        return np.exp(self.scores - self.scores.max(axis=1, keepdims=True))

    def conditional(self, item: Integers) -> Floats:
        slates, positions = item.shape
        left = np.broadcast_to(self._strength, (slates, self.scores.shape[1])).copy()
        found = np.zeros((slates, positions, left.shape[1]))
        row = np.arange(slates)
        for position in range(positions):
            total = left.sum(axis=1, keepdims=True)
            np.divide(left, total, out=found[:, position], where=total > 0)
            present = item[:, position] != EMPTY
            left[row[present], item[present, position]] = 0.0
        return found

    def marginal(self, slates: int, positions: int) -> Floats | None:
        strength = self._strength
        count = strength.shape[1]
        sizes = range(min(positions, count))
        if sum(math.comb(count, size) for size in sizes) > MOST_SETS:
            return None
        found = np.zeros((len(strength), positions, count))
        # The probability that the items above a position are this set.
        above: dict[tuple[int, ...], Floats] = {(): np.ones(len(strength))}
        for position in sizes:
            below: dict[tuple[int, ...], Floats] = {}
            for chosen in combinations(range(count), position):
                rest = [item for item in range(count) if item not in chosen]
                share = above[chosen][:, None] * strength[:, rest]
                share /= strength[:, rest].sum(axis=1, keepdims=True)
                found[:, position, rest] += share
                for item, probability in zip(rest, share.T, strict=True):
                    key = tuple(sorted((*chosen, item)))
                    below[key] = below.get(key, np.zeros(len(strength))) + probability
            above = below
        return found


@dataclass(frozen=True)
class SlateInversePropensity(RankingEstimator):
    """V = (1/n) Σ_i w_i Σ_k r_ik, where w_i is the weight of the whole slate, Π_k w_ik.

    Unbiased whatever users do, because it treats a slate as one action. The weights grow
    exponentially with the number of positions.
    """

    short: ClassVar[str] = "sips"
    assumes: ClassVar[str] = "nothing about users; the weights are those of whole slates"

    def missing(self, evidence: RankingEvidence) -> str | None:
        return None

    def weights(self, evidence: RankingEvidence) -> Floats:
        whole = evidence.weight.prod(axis=1, keepdims=True)
        return np.broadcast_to(whole, evidence.reward.shape)


@dataclass(frozen=True)
class IndependentInversePropensity(RankingEstimator):
    """V = (1/n) Σ_i Σ_k π(a_ik at k) / p(a_ik at k) r_ik.

    Unbiased if the reward at a position depends only on the item there and on the position: this is
    the item-position model.

    Reference: Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay and Wen (2018), Offline evaluation
    of ranking policies with click models.
    """

    short: ClassVar[str] = "iips"
    assumes: ClassVar[str] = "the reward at a position depends only on its item and the position"

    def missing(self, evidence: RankingEvidence) -> str | None:
        return None if evidence.marginal_weight is not None else "marginal probabilities"

    def weights(self, evidence: RankingEvidence) -> Floats:
        assert evidence.marginal_weight is not None
        return evidence.marginal_weight


@dataclass(frozen=True)
class RewardInteraction(RankingEstimator):
    """V = Σ_k Σ_i w_i,1:k r_ik / Σ_i w_i,1:k, with w_i,1:k = Π_j≤k w_ij.

    The reward of a position is weighted by the items down to this position. Consistent if users
    read from the top, so that a reward depends on the items above and at its position: the cascade
    model is a special case. The weights of each position are normalized, which reduces the
    variance and adds a bias of order 1/n; with ``normalized`` = False they are not, and the
    estimate is unbiased.

    Reference: McInerney, Brost, Chandar, Mehrotra and Carterette (2020), Counterfactual evaluation
    of slate recommendations with sequential reward interactions.
    """

    normalized: bool = True
    short: ClassVar[str] = "rips"
    assumes: ClassVar[str] = "the reward at a position depends on the items above and at it"

    def missing(self, evidence: RankingEvidence) -> str | None:
        return None

    def weights(self, evidence: RankingEvidence) -> Floats:
        return evidence.above()

    def terms(self, evidence: RankingEvidence) -> Terms:
        plain = super().terms(evidence)
        if not self.normalized:
            return plain
        weight, counts = self.weights(evidence), evidence.counts
        averages = np.array([mean(column, counts) for column in weight.T])
        sums = np.array([mean(column, counts) for column in (weight * evidence.reward).T])
        with np.errstate(invalid="ignore", divide="ignore"):
            values: Floats = np.where(averages > 0, sums / averages, np.nan)
            # Ratios are linearized: their terms have the mean v and the variance of the ratio.
            terms = values + weight * (evidence.reward - values) / averages
        return plain._replace(numerator=terms.sum(axis=1))


@dataclass(frozen=True)
class CascadeDoublyRobust(RankingEstimator):
    """V = (1/n) Σ_i Σ_k [w_i,1:k (r_ik − q̂_k(a_ik)) + w_i,1:k−1 E_π[q̂_k(a) | a_i,1:k−1]].

    q̂_k(a) predicts the rewards from position k on. Unbiased under the assumption of ``rips``,
    whatever q̂ is; the better q̂, the smaller the variance.

    Reference: Kiyohara, Saito, Matsuhiro, Narita, Shimizu and Yamamoto (2022), Doubly robust
    off-policy evaluation for ranking policies under the cascade behavior model.
    """

    short: ClassVar[str] = "cascade-dr"
    assumes: ClassVar[str] = "the reward at a position depends on the items above and at it"

    def missing(self, evidence: RankingEvidence) -> str | None:
        if evidence.predicted is None or evidence.expected is None:
            return "the probabilities of all items at each position (policies as objects)"
        return None

    def weights(self, evidence: RankingEvidence) -> Floats:
        return evidence.above()

    def terms(self, evidence: RankingEvidence) -> Terms:
        assert evidence.predicted is not None
        assert evidence.expected is not None
        weight = self.weights(evidence)
        before = np.concatenate([np.ones((len(weight), 1)), weight[:, :-1]], axis=1)
        of_model = np.where(
            evidence.filled, before * evidence.expected - weight * evidence.predicted, 0.0
        ).sum(axis=1)
        low, high = evidence.reach(weight)
        return Terms(
            of_model + (weight * evidence.reward).sum(axis=1),
            reach=(float(of_model.min()) + low, float(of_model.max()) + high),
            counts=evidence.counts,
        )


@dataclass(frozen=True)
class PositionBased(RankingEstimator):
    """V = (1/n) Σ_i Σ_k r_ik Σ_j θ_j π(a_ik at j) / Σ_j θ_j p(a_ik at j).

    Unbiased if E[r_k] = θ_k γ(a_k): a user examines position k with probability θ_k and, if so, is
    attracted by the item with probability γ(a). An item then tells about all positions, so that its
    weight is at most the largest of its weights in ``iips``. θ is the ``examination``, of which
    only ratios matter; if it is None, it is estimated by θ_k ∝ (1/n) Σ_i r_ik / p(a_ik at k), which
    needs a log that can place every item at every position.

    Reference: Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay and Wen (2018), Offline evaluation
    of ranking policies with click models. *Departs from the paper:* weights are not clipped, and
    the examination can be estimated.
    """

    examination: tuple[float, ...] | None = None
    short: ClassVar[str] = "pbm"
    assumes: ClassVar[str] = "a click needs a position that is examined and an item that attracts"

    def missing(self, evidence: RankingEvidence) -> str | None:
        if evidence.placed is None or evidence.logged_placed is None:
            return "the probabilities of items at all positions (policies as objects)"
        return None

    def weights(self, evidence: RankingEvidence) -> Floats:
        assert evidence.placed is not None
        assert evidence.logged_placed is not None
        theta = self.examined(evidence)
        below = evidence.logged_placed @ theta
        return np.divide(evidence.placed @ theta, below, out=np.zeros(below.shape), where=below > 0)

    def examined(self, evidence: RankingEvidence) -> Floats:
        """Return the examination of every position, that of the first is 1, ``[K]``."""
        positions = evidence.reward.shape[1]
        if self.examination is not None:
            theta = np.asarray(self.examination, dtype=np.float64)
            if theta.shape != (positions,) or not (theta > 0).any() or (theta < 0).any():
                raise InputError(
                    f"the examination is {self.examination!r}; {positions} numbers, one for each "
                    "position and none below 0, are allowed: give them, or None to estimate them",
                    parameter="examination",
                )
            return theta
        assert evidence.logged_placed is not None
        own = np.diagonal(evidence.logged_placed, axis1=1, axis2=2)
        found = np.where(evidence.filled, evidence.reward / np.where(own > 0, own, 1.0), 0.0)
        averages = np.array([mean(column, evidence.counts) for column in found.T])
        if not averages[0] > 0:
            # Nothing was earned at the top: positions are then taken to be examined alike.
            return np.ones(positions)
        return np.maximum(averages / averages[0], 0.0)


RANKING_ESTIMATORS: dict[str, type[RankingEstimator]] = {
    one.short: one
    for one in (
        CascadeDoublyRobust,
        RewardInteraction,
        SlateInversePropensity,
        PositionBased,
        IndependentInversePropensity,
    )
}
"""Estimators by name, in the order in which they are recommended: fewer assumptions and a smaller
variance come first."""


FOLDS = 3
"""Folds of the cross-fitting: predictions of a slate are fitted to the slates of other folds."""
PRIOR_SLATES = 10.0
"""Slates with the mean of their position that are added to those of each item: a weak prior."""
MOST_NUMBERS = 1 << 22
"""Probabilities, slates × positions × items, that are in memory together: 32 MB."""


class SlateEvidence:
    """A log of slates on which ranking policies are evaluated.

    ``logging`` is the policy that wrote the log, if it is known as an object: its probabilities of
    items at other positions cannot be logged in a row.
    """

    def __init__(self, slates: Slates, logging: RankingPolicy | None, seed: int) -> None:
        self.slates, self._logging = slates, logging
        self._bounds = (0.0, 1.0) if np.isin(slates.reward, (0, 1)).all() else None
        shape = (len(slates), slates.positions)
        self._logged = None if logging is None else logging.marginal(*shape)
        self._fold = np.random.default_rng(seed).integers(FOLDS, size=len(slates))
        self._tables = [self._fitted(self._fold != fold) for fold in range(FOLDS)]

    def about_logging_policy(self) -> RankingEvidence:
        """Return the evidence about the policy that wrote the log: all weights are 1."""
        slates = self.slates
        ones = np.ones(slates.reward.shape)
        return RankingEvidence(slates.reward, slates.filled, ones, ones, bounds=self._bounds)

    def about(self, policy: RankingPolicy | str) -> RankingEvidence:
        """Return the evidence about a policy: an object, or the name of one given by columns."""
        slates = self.slates
        if isinstance(policy, str):
            one_of("policy given by a column:", policy, slates.given)
            found, own_marginal = slates.given[policy], slates.given_marginal.get(policy)
            placed = predicted = expected = None
        else:
            found, predicted, expected = self._listed(policy)
            marginal = policy.marginal(len(slates), slates.positions)
            placed = None if marginal is None else _placed(marginal, slates.item)
            own_marginal = None if placed is None else _own(placed)
        logged_placed = None if self._logged is None else _placed(self._logged, slates.item)
        logged = slates.marginal if logged_placed is None else _own(logged_placed)
        return RankingEvidence(
            slates.reward,
            slates.filled,
            np.where(slates.filled, found / slates.propensity, 1.0),
            None if own_marginal is None or logged is None else _ratio(own_marginal, logged),
            placed,
            logged_placed,
            predicted,
            expected,
            self._bounds,
        )

    def _conditional(self, policy: RankingPolicy) -> Floats:
        """Return the probabilities of all items at each position; refuse those of other slates."""
        slates = self.slates
        wanted = (len(slates), slates.positions, len(slates.items))
        known = ", ".join(slates.items)[:80]
        try:
            table = policy.conditional(slates.item)
        except (ValueError, IndexError) as error:
            raise InputError(
                f"the policy cannot rank these slates ({one_line(error)}); one for {wanted[0]} "
                f"slates of {wanted[1]} positions and {wanted[2]} items is allowed: give a number "
                f"for each of the items {known}, in this order",
                parameter="policies",
            ) from error
        if table.shape != wanted:
            raise InputError(
                f"the policy ranks {table.shape[2]} items on {table.shape[1]} positions, and the "
                f"log has {wanted[2]} items on {wanted[1]} positions: give a number for each of "
                f"the items {known}, in this order",
                parameter="policies",
            )
        return table

    def _listed(self, policy: RankingPolicy) -> tuple[Floats, Floats, Floats]:
        """Return the probability of the items, and q̂ of them and in expectation, ``[n, K]``."""
        slates = self.slates
        shape = slates.item.shape
        chosen = np.maximum(slates.item, 0)
        found, predicted, expected = np.ones(shape), np.zeros(shape), np.zeros(shape)
        # A policy with scores for each slate needs all slates together.
        table = self._conditional(policy)
        position = np.arange(shape[1])
        step = max(1, MOST_NUMBERS // (shape[1] * len(slates.items)))
        for first in range(0, shape[0], step):
            rows = slice(first, first + step)
            part, item = table[rows], chosen[rows]
            q = np.stack(self._tables)[self._fold[rows]]
            found[rows] = np.take_along_axis(part, item[..., None], axis=2)[..., 0]
            predicted[rows] = q[np.arange(len(item))[:, None], position, item]
            expected[rows] = (part * q).sum(axis=2)
        return found, predicted, expected

    def _fitted(self, which: Booleans) -> Floats:
        """Return q̂, the mean of the rewards from a position on, by position and item, ``[K, M]``.

        Items with few slates are shrunk to the mean of the position.
        """
        slates = self.slates
        item, filled = slates.item[which], slates.filled[which]
        ahead = np.cumsum(slates.reward[which][:, ::-1], axis=1)[:, ::-1]
        table = np.zeros((slates.positions, len(slates.items)))
        for position in range(slates.positions):
            taken = filled[:, position]
            if not taken.any():
                continue
            values, chosen = ahead[taken, position], item[taken, position]
            sums = np.bincount(chosen, values, minlength=table.shape[1])
            counts = np.bincount(chosen, minlength=table.shape[1])
            prior = PRIOR_SLATES * values.mean()
            table[position] = (sums + prior) / (counts + PRIOR_SLATES)
        return table


def _placed(marginal: Floats, item: Integers) -> Floats:
    """Return the probability of the item at position k at every position j, ``[n, K, K]``."""
    chosen = np.maximum(item, 0)
    if len(marginal) == 1:
        return marginal[0].T[chosen]
    return np.take_along_axis(marginal.swapaxes(1, 2), chosen[..., None], axis=1)


def _own(placed: Floats) -> Floats:
    """Return the probability of every item at its own position, ``[n, K]``."""
    return np.diagonal(placed, axis1=1, axis2=2)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros(above.shape), where=below > 0)


def slate_overview(
    slates: Slates, settings: Mapping[str, Any], overlap: Mapping[str, Overlap]
) -> Overview:
    """Return the data checks of a log of slates: rewards per slate, items and positions."""
    sums = slates.reward.sum(axis=1)
    propensity = slates.propensity[slates.filled]
    return Overview(
        rows=len(slates),
        learned_rows=0,
        reward_kind="binary" if np.isin(slates.reward, (0, 1)).all() else "continuous",
        rewards=_low_mean_high(sums),
        propensities=_low_mean_high(propensity),
        estimated=0,
        choices=[*_items(slates), *_positions(slates)],
        fields=(),
        settings=settings,
        digest=slates.fingerprint,
        overlap=overlap,
    )


def _items(slates: Slates) -> list[ChoiceFacts]:
    """Return how often each item was in a slate and what it earned there, the most frequent first.

    The propensities of items are not checked: which items could have been in a slate is not known.
    """
    chosen = slates.item[slates.filled]
    rows = np.bincount(chosen, minlength=len(slates.items))
    earned = np.bincount(chosen, slates.reward[slates.filled], minlength=len(slates.items))
    order = np.argsort(-rows, kind="stable")
    return [_facts("", slates.items[one], int(rows[one]), float(earned[one])) for one in order]


def _positions(slates: Slates) -> list[ChoiceFacts]:
    """Return how many slates have each position, and what was earned at it."""
    rows, earned = slates.filled.sum(axis=0), slates.reward.sum(axis=0)
    return [
        _facts("position", str(place + 1), int(rows[place]), float(earned[place]))
        for place in range(slates.positions)
    ]


def _facts(slot: str, name: str, rows: int, earned: float) -> ChoiceFacts:
    return ChoiceFacts(slot, name, rows, earned / rows if rows else float("nan"), None)


def _low_mean_high(values: Floats) -> tuple[float, float, float]:
    return float(values.min()), float(values.mean()), float(values.max())


FEWEST_EFFECTIVE = 100.0
"""Effective slates below which an estimate has a caution: intervals need about this many."""
LARGEST_WEIGHT_SHARE = 0.05
"""One slate with more than this share of all weight makes intervals unreliable."""


def compare_rankings(
    slates: Slates,
    policies: Mapping[str, RankingPolicy] | None = None,
    *,
    logging: RankingPolicy | None = None,
    estimators: Sequence[str | RankingEstimator] = (),
    interval: str = "gamma",
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Return the expected reward per slate of ranking policies, with that of the logging policy.

    ``policies`` are objects such as ``PlackettLuce``; those that the log has as columns are
    evaluated, too. ``logging`` is the policy that wrote the log, if it is known as an object: then
    ``iips`` and ``pbm`` know where else an item could have been. An estimator that needs what is
    not known is left out, and a note says so. Intervals are by slate, or by cluster.

    The estimators are ``cascade-dr``, ``rips``, ``sips``, ``pbm`` and ``iips``; ``seed`` draws
    the folds of the cross-fitting.

    >>> from submax.research.beyond.rankings import PlackettLuce
    >>> table = {"slate": [1, 1, 2, 2], "position": [1, 2, 1, 2],
    ...          "action": ["A", "B", "B", "A"], "reward": [1, 0, 0, 1],
    ...          "propensity": [0.5, 1.0, 0.5, 1.0]}
    >>> found = compare_rankings(Slates.read(table), {"A first": PlackettLuce(np.array([2.0, 0]))},
    ...                          estimators=["sips"])
    >>> round(found.find("A first", "sips").value, 3)
    1.0
    """
    one_of("interval", interval, INTERVALS)
    chosen = _estimators(estimators)
    logged = SlateEvidence(slates, logging, seed)
    targets = _targets(slates, policies or {})
    evaluation = _Evaluation(slates, interval, level, seed, [])
    based = evaluation.logging_policy(logged.about_logging_policy())
    estimates, differences = [based.estimate], list[Difference]()
    overlap = dict[str, Overlap]()
    for name, target in targets.items():
        evidence = logged.about(target)
        found = evaluation.estimates(name, evidence, chosen, bool(estimators))
        estimates += [one.estimate for one in found]
        differences += [evaluation.difference(one, based) for one in found]
        best = next(one.estimate.estimator for one in found if one.estimate.recommended)
        overlap[name] = Overlap.of(_slate_weight(chosen[best], evidence))
    settings = {
        "policies": ", ".join(targets),
        "estimators": ", ".join(chosen),
        "interval": interval,
        "level": level,
        "seed": seed,
    }
    overview = slate_overview(slates, settings, overlap)
    return Comparison(estimates, evaluation.notes, level, differences, overview, SLATE)


def _targets(
    slates: Slates, policies: Mapping[str, RankingPolicy]
) -> dict[str, RankingPolicy | str]:
    """Return the policies to evaluate: those of columns, and those that are objects."""
    targets: dict[str, RankingPolicy | str] = {name: name for name in slates.given}
    for name, policy in policies.items():
        if name in targets or name == LOGGING_POLICY:
            raise InputError(
                f"two policies are called {name!r}, and each needs its own name: rename one",
                parameter="policies",
            )
        targets[name] = policy
    if not targets:
        raise InputError(
            "no policy is given; columns (Slates.read(..., policies={'new': 'new_probability'})) "
            "and objects (PlackettLuce) are allowed: give at least one",
            parameter="policies",
        )
    return targets


def _estimators(given: Sequence[str | RankingEstimator]) -> dict[str, RankingEstimator]:
    for one in given:
        if isinstance(one, str):
            one_of("ranking estimator", one, RANKING_ESTIMATORS)
    made = [RANKING_ESTIMATORS[one]() if isinstance(one, str) else one for one in given]
    found = {one.short: one for one in made or (kind() for kind in RANKING_ESTIMATORS.values())}
    if len(found) < len(given):
        raise InputError(
            "an estimator is given twice, and each kind may be given once: leave one out",
            parameter="estimators",
        )
    return found


class _Found(NamedTuple):
    """An estimate, and the terms from which it was computed."""

    estimate: Estimate
    terms: Terms

    def marked(self, best: bool) -> "_Found":
        """Return the estimate, recommended if it is the best of its policy."""
        return self._replace(estimate=self.estimate._replace(recommended=best))


class _Evaluation(NamedTuple):
    """The log, and how intervals are computed; ``notes`` are added as they arise."""

    slates: Slates
    interval: str
    level: float
    seed: int
    notes: list[str]

    def logging_policy(self, evidence: RankingEvidence) -> _Found:
        """Return the mean reward per slate of the log."""
        kind = RANKING_ESTIMATORS["sips"]()
        self.notes.append(f"{len(self.slates)} slates of up to {self.slates.positions} positions")
        return self._estimated(LOGGING_POLICY, "mean", kind, evidence, []).marked(True)

    def estimates(
        self,
        name: str,
        evidence: RankingEvidence,
        estimators: Mapping[str, RankingEstimator],
        asked: bool,
    ) -> list[_Found]:
        """Return the estimates of one policy; one of them is recommended."""
        found = []
        for label, estimator in estimators.items():
            lacking = estimator.missing(evidence)
            if lacking is not None and asked:
                raise InputError(
                    f"the estimator {label} needs {lacking}, which are not known for {name!r}: "
                    "give policies and logging as objects, or leave the estimator out",
                    parameter="estimators",
                )
            if lacking is not None:
                note = f"{label} is left out: it needs {lacking}"
                self.notes.extend([] if note in self.notes else [note])
                continue
            cautions = list(_cautions(estimator, evidence))
            found.append(self._estimated(name, label, estimator, evidence, cautions))
        best = min(found, key=lambda one: len(one.estimate.cautions))
        return [one.marked(one is best) for one in found]

    def difference(self, found: _Found, based: _Found) -> Difference:
        """Return the difference of a policy from the logging policy."""
        sums = TermSums.of(found.terms, based.terms, found.terms.value, self._units())
        ((value, ends, error),) = differences_of(
            [sums.difference()], self.interval, self.level, self.seed
        )
        one, rows = found.estimate, len(self.slates)
        return Difference(
            one.policy,
            LOGGING_POLICY,
            one.estimator,
            value,
            ends,
            error,
            rows,
            self.level,
            one.recommended,
        )

    def _estimated(
        self,
        name: str,
        label: str,
        estimator: RankingEstimator,
        evidence: RankingEvidence,
        cautions: list[str],
    ) -> _Found:
        terms = estimator.terms(evidence)
        rng = np.random.default_rng(self.seed)
        summed = TermSums.of(terms, None, terms.value, self._units()).estimate()
        [ends] = INTERVALS[self.interval]([summed], self.level, rng)
        around = ends.joined(ConfidenceInterval(terms.value, terms.value))
        if evidence.bounds is not None:
            low, high = (end * evidence.reward.shape[1] for end in evidence.bounds)
            around = ConfidenceInterval(*np.clip(around, low, high).tolist())
        diagnostics = Diagnostics.of_weights(
            _slate_weight(estimator, evidence), evidence.reward.sum(axis=1)
        )
        value = float(np.clip(terms.value, around.low, around.high))
        estimate = Estimate(name, label, value, around, None, diagnostics, tuple(cautions))
        return _Found(estimate, terms)

    def _units(self) -> Units:
        cluster = self.slates.cluster
        if cluster is None:
            return Units.of_rows(len(self.slates))
        return Units(cluster, int(cluster.max()) + 1, clusters=True)


def _slate_weight(estimator: RankingEstimator, evidence: RankingEvidence) -> Floats:
    """Return one weight for each slate: the mean of the weights of its positions."""
    filled = evidence.filled
    sums = np.where(filled, estimator.weights(evidence), 0.0).sum(axis=1)
    return sums / filled.sum(axis=1)


def _cautions(estimator: RankingEstimator, evidence: RankingEvidence) -> Iterator[str]:
    """Yield sentences about reasons not to trust an estimate."""
    weight = _slate_weight(estimator, evidence)
    found = Diagnostics.of_weights(weight, evidence.reward.sum(axis=1))
    if found.effective < FEWEST_EFFECTIVE:
        yield (
            f"by the weights the effective sample size is {found.effective:.0f} of {found.rows} "
            "slates, which is too small"
        )
    if found.largest_share > LARGEST_WEIGHT_SHARE:
        yield (
            f"one slate has {found.largest_share:.0%} of the sum of all weights (its weight is "
            f"{found.largest:.3g}): intervals are too short"
        )
    if estimator.short != "pbm":
        z = errors_from_one(found.mean_weight, found.mean_error, found.rows, found.largest)
        if abs(z) > SIGNIFICANT_ERRORS:
            yield (
                f"the weights average {found.mean_weight:.2f} and should average 1, and chance "
                "does not explain the difference: the propensities are wrong, or the log could not "
                "make some of the slates"
            )
    if estimator.short in ("pbm", "iips"):
        yield f"{estimator.short} assumes that {estimator.assumes}, which is not tested"
