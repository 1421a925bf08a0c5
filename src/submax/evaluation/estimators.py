"""Off-policy estimators: what they get (evidence), what they return (terms), and each formula."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.checks import Checked, Positive
from submax.core.errors import InputError
from submax.core.registry import Registry
from submax.statistics.sums import Terms, mean, quantiles, sampled, total


class Evidence(NamedTuple):
    """The evidence of n rows about a policy π; arrays are ``[n]``.

    A row has context x, action a, reward r and propensity p. ``weight`` is π(a | x) / p and
    ``probability`` is π(a | x). ``predicted`` is q̂(x, a), the prediction of a reward model that was
    fitted to other rows, and ``expected`` is Σ_a' π(a' | x) q̂(x, a'). In a log of several slots
    ``slot_weight [n, S]`` is π_s(a_s | x) / p_s, the weight of each slot's choice by itself.
    ``bounds`` are the lowest and the highest possible reward, if they are known. ``counts`` is the
    number of equal decisions that each row stands for, and ``sampling_weight`` how many rows it
    stands for, if the log is a sample. In a log of sessions ``sessions [n, 3]`` are the products of
    weights before each step, through it, and over the whole session. ``unsupported`` is the
    probability, in the context of each row, that π takes a choice which none of the evaluated rows
    took. ``covariates [n, C]`` were measured before the decisions.
    """

    reward: Floats
    weight: Floats
    probability: Floats
    predicted: Floats
    expected: Floats
    slot_weight: Floats | None = None
    bounds: tuple[float, float] | None = None
    counts: Floats | float = 1.0
    sessions: Floats | None = None
    unsupported: Floats | float = 0.0
    sampling_weight: Floats | float = 1.0
    covariates: Floats | None = None

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and the highest possible reward, or observed one if these are not known."""
        if self.bounds is not None:
            return self.bounds
        return float(self.reward.min()), float(self.reward.max())

    def weighted(self, weight: Floats, corrects_model: bool) -> Floats:
        """Return w r, or if it ``corrects_model`` Σ_a' π(a' | x) q̂(x, a') + w (r − q̂)."""
        if corrects_model:
            return self.expected + weight * (self.reward - self.predicted)
        return weight * self.reward

    def reach(self, weight: Floats, corrects_model: bool) -> tuple[float, float]:
        """Return the smallest and the largest possible ``weighted`` for all weights and rewards."""
        low, high = self.reward_range
        if corrects_model:
            # Row by row: a row with a large weight and a high prediction cannot reach far upward.
            base = self.expected - weight * self.predicted
            return float((base + weight * low).min()), float((base + weight * high).max())
        ends = np.outer([weight.min(), weight.max(), 0.0], [low, high])
        return float(ends.min()), float(ends.max())

    def rows(self, mask: Booleans) -> "Evidence":
        """Return the evidence of some of the rows."""
        fields: Iterable[Any] = self
        return Evidence._make(one[mask] if isinstance(one, np.ndarray) else one for one in fields)


NEEDS = {
    "slots": "a log of several slots without real-valued parts",
    "sessions": "a log with sessions (--column session=NAME)",
}
"""What a log must have if an estimator relies on something that only some logs have."""


class OffPolicyEstimator(ABC):
    """Estimates from the evidence about a policy what the policy would have earned.

    ``short`` is the name of the estimator in tables. It ``relies_on`` the `weights` of whole
    actions, the logged `propensities`, the `model` of the rewards alone, the weights of `slots` or
    of `sessions`, on `single decisions` that do not change what comes later, or on a log that
    allows `replay`. A caution about one of these is attached to its estimates. The terms of a row
    depend on rows of other sessions only through ``tuned``, so sums add up.
    """

    short: ClassVar[str]
    relies_on: ClassVar[tuple[str, ...]] = ("weights", "propensities", "single decisions")

    def not_applicable(self) -> InputError:
        """Return the error about a log that lacks what the estimator relies on."""
        needed = next(NEEDS[name] for name in self.relies_on if name in NEEDS)
        return InputError(
            f"the estimator {self.short} needs {needed}: leave it out, or use another one, "
            "such as dr",
            parameter="estimators",
        )

    def required(self, weights: Floats | None) -> Floats:
        """Return weights that the estimator needs; refuse a log that has none."""
        if weights is None:
            raise self.not_applicable()
        return weights

    def tuned(self, evidence: Evidence) -> Self:
        """Return the estimator with the parameters that it chooses from the evidence."""
        return self

    @abstractmethod
    def terms(self, evidence: Evidence) -> Terms:
        """Return the terms whose mean, or ratio of means, is the estimate."""


def tuned(estimator: OffPolicyEstimator, evidence: Evidence) -> Callable[[Evidence], Terms]:
    """Return the function from rows to terms, with all parameters chosen from this evidence.

    If the rows are a sample of a log, the terms estimate the value on the whole log.
    """
    estimator = estimator.tuned(evidence)

    def plain(about: Evidence) -> Terms:
        return sampled(estimator.terms(about), about.sampling_weight)

    # Replay has weights, but not with the mean 1.
    by_weight = "weights" in estimator.relies_on and "replay" not in estimator.relies_on
    if evidence.covariates is None or not by_weight:
        return plain
    adjusted = adjustment(plain(evidence), evidence)
    return lambda about: adjusted(plain(about), about)


SMALLEST_EIGENVALUE = 1e-10
"""Relative size below which a direction of the controls is taken to be empty."""


def adjustment(terms: Terms, evidence: Evidence) -> Callable[[Terms, Evidence], Terms]:
    """Return the function that adds offsets −θ · z_i to terms, fitted to the terms of some rows.

    The controls are z_i = (w_i − 1) (1, x_i), where x_i are covariates that were known before the
    decision, such as the visits of the week before, standardized. Weights of a policy have the
    mean 1 given x, so E[z] = 0 and the adjustment does not change the expectation, up to order
    1/n; θ is the regression of the terms on z, which removes the part of the noise that x explains.
    For the difference of two policies this is CUPED. If the log is a sample, z_i is multiplied by
    the sampling weight of the row, over its mean.

    Reference: Deng, Xu, Kohavi and Walker (2013), Improving the sensitivity of online controlled
    experiments by utilizing pre-experiment data.
    """
    influence, covariates = terms.influence(), np.asarray(evidence.covariates)
    share = np.full(len(influence), terms.counts) / terms.decisions
    centre = share @ covariates
    deviation = np.sqrt(share @ (covariates - centre) ** 2)
    spread = np.where(deviation > 0, deviation, 1.0)
    kept = mean(evidence.sampling_weight, terms.counts)

    def controls(about: Evidence) -> Any:
        x = np.insert((np.asarray(about.covariates) - centre) / spread, 0, 1.0, axis=1)
        return ((about.weight - 1) * about.sampling_weight / kept)[:, None] * x

    fitted = controls(evidence)
    distance = fitted - share @ fitted
    gram = distance.T @ (share[:, None] * distance)
    moment = distance.T @ (share * (influence - share @ influence))
    theta = np.linalg.pinv(gram, rcond=SMALLEST_EIGENVALUE, hermitian=True) @ moment
    return lambda terms, about: terms._replace(offset=terms.offset - controls(about) @ theta)


CANDIDATES = 24
"""Thresholds that are tried: with 24, neighbouring ones differ little in their error."""
LARGEST_TAIL = 0.5
"""A threshold exceeded by more than this share of the weights is not tried."""
LOWEST_THRESHOLD = 2.0
"""Weights average 1, so a weight up to 2 is not large, and no lower threshold is tried."""


def candidate_thresholds(weight: Floats, count: Floats | float = 1.0) -> Floats:
    """Return thresholds to try: quantiles of the weights, denser toward the largest weight.

    The largest weight itself is among them.
    """
    positive = weight[weight > 0]
    if positive.size == 0:
        return np.ones(1)
    counted = np.broadcast_to(count, len(weight))[weight > 0]
    rarest = 1 / total(positive, counted)
    tail = np.geomspace(LARGEST_TAIL, min(LARGEST_TAIL, rarest), CANDIDATES - 1)
    tried = quantiles(positive, np.append(1 - tail, 1.0), counted)
    return np.unique(np.maximum(tried, min(LOWEST_THRESHOLD, tried[-1])))


def least_error_threshold(
    thresholds: Floats,
    kept: Callable[[float], Floats],
    whole: Floats,
    count: Floats | float = 1.0,
) -> float:
    """Return the threshold with the least estimated mean squared error, s² / n + b².

    ``kept`` returns the terms with a threshold, whose variance is s², and ``whole`` are those
    without one. The mean of what is lost estimates the bias b. The variance of this mean is
    subtracted from its square (but not below 0), so b² is not overestimated. ``count`` is the
    number of decisions of each term.
    """
    decisions = total(whole, count)
    share = np.full(len(whole), count) / decisions

    def mean_and_error(values: Floats) -> tuple[float, float]:
        average = float(share @ values)
        return average, float(share @ (values - average) ** 2) / decisions

    errors = []
    for threshold in thresholds:
        terms = kept(float(threshold))
        lost, error_of_lost = mean_and_error(whole - terms)
        errors.append(mean_and_error(terms)[1] + max(0.0, lost**2 - error_of_lost))
    return float(thresholds[int(np.argmin(errors))])


def weighted(
    evidence: Evidence,
    weight: Floats,
    corrects_model: bool = False,
    largest: Floats | None = None,
) -> Terms:
    """Return the terms of (1/n) Σ_i w_i r_i, or of their doubly robust form.

    ``largest`` are the largest possible weights, row by row, by default the ``weight`` itself.
    """
    reach = evidence.reach(weight if largest is None else largest, corrects_model)
    return Terms(evidence.weighted(weight, corrects_model), reach=reach, counts=evidence.counts)


def weighted_mean(evidence: Evidence, weight: Floats) -> Terms:
    """Return the terms of Σ_i w_i r_i / Σ_i w_i."""
    return Terms(weight * evidence.reward, weight, evidence.reward_range, counts=evidence.counts)


@dataclass(frozen=True)
class ThresholdEstimator(OffPolicyEstimator, Checked):
    """The estimator ``plain`` with ``limited`` weights.

    If the ``threshold`` is None, the one with the least estimated error is chosen. A threshold
    reduces the variance and moves the estimate by an unknown amount. The estimate of ``plain``,
    which has no threshold, does not have this bias. So the interval is the shortest one that
    contains both intervals.
    """

    threshold: Positive | None = None
    plain: ClassVar[OffPolicyEstimator]

    def tuned(self, evidence: Evidence) -> Self:
        if self.threshold is not None:
            return self
        weight, counts, corrects = evidence.weight, evidence.counts, self._corrects_model

        def kept(threshold: float) -> Floats:
            return evidence.weighted(self.limited(weight, threshold), corrects)

        tried = self.candidates(candidate_thresholds(weight, counts))
        whole = evidence.weighted(weight, corrects)
        return replace(self, threshold=least_error_threshold(tried, kept, whole, counts))

    def terms(self, evidence: Evidence) -> Terms:
        used, weight = self.tuned(evidence).threshold or 0.0, evidence.weight
        limited, largest = self.limited(weight, used), self.largest(weight, used)
        terms = weighted(evidence, limited, self._corrects_model, largest)
        return terms._replace(threshold=used)

    @property
    def _corrects_model(self) -> bool:
        return isinstance(self.plain, DoublyRobust)

    def candidates(self, thresholds: Floats) -> Floats:
        """Return the values that are tried, from thresholds of the weights."""
        return thresholds

    @abstractmethod
    def limited(self, weight: Floats, threshold: float) -> Floats:
        """Return the weights that are used instead."""

    def largest(self, weight: Floats, threshold: float) -> Floats:
        """Return the largest weights that could be used instead, row by row."""
        return np.minimum(weight, threshold)


@dataclass(frozen=True)
class InversePropensity(OffPolicyEstimator):
    """V = (1/n) Σ_i w_i r_i with w_i = π(a_i | x_i) / p_i.

    Unbiased if the propensities are right and the logging policy could take every action that π
    takes.

    Reference: Horvitz and Thompson (1952).
    """

    short = "ips"

    def terms(self, evidence: Evidence) -> Terms:
        return weighted(evidence, evidence.weight)


@dataclass(frozen=True)
class SelfNormalized(OffPolicyEstimator):
    """V = Σ_i w_i r_i / Σ_i w_i with w_i = π(a_i | x_i) / p_i.

    A weighted mean of rewards, so it is never outside of their range; consistent, with a bias
    of order 1/n.

    Reference: Swaminathan and Joachims (2015), The self-normalized estimator for counterfactual
    learning.
    """

    short = "snips"

    def terms(self, evidence: Evidence) -> Terms:
        return weighted_mean(evidence, evidence.weight)


@dataclass(frozen=True)
class ClippedInversePropensity(ThresholdEstimator):
    """V = (1/n) Σ_i min(w_i, λ) r_i, where λ is the ``threshold``.

    The bias is downward if rewards are not negative.

    Reference: Ionides (2008), Truncated importance sampling; the choice of λ by an estimate of the
    mean squared error follows Wang, Agarwal and Dudík (2017).
    """

    short = "clipped"
    plain = InversePropensity()

    def limited(self, weight: Floats, threshold: float) -> Floats:
        return np.minimum(weight, threshold)

    def largest(self, weight: Floats, threshold: float) -> Floats:
        return np.array([0.0, threshold])


@dataclass(frozen=True)
class Replay(OffPolicyEstimator):
    """V = Σ_i π(a_i | x_i) r_i / Σ_i π(a_i | x_i).

    Replay draws an action from π in every row, keeps the rows in which the logged action was
    drawn, and averages their rewards. This formula replaces the draws by their expectation.
    Propensities are not used, so the logging policy must have been uniform.

    Reference: Li, Chu, Langford and Wang (2011).
    """

    short = "replay"
    relies_on = "weights", "replay", "single decisions"

    def terms(self, evidence: Evidence) -> Terms:
        return weighted_mean(evidence, evidence.probability)


@dataclass(frozen=True)
class DirectMethod(OffPolicyEstimator):
    """V = (1/n) Σ_i Σ_a π(a | x_i) q̂(x_i, a), where q̂ is a model of the rewards.

    The variance is small, and the bias is that of the model. The confidence interval does not
    include the model's error.
    """

    short = "dm"
    relies_on = "model", "single decisions"

    def terms(self, evidence: Evidence) -> Terms:
        return Terms(evidence.expected, counts=evidence.counts)


@dataclass(frozen=True)
class DoublyRobust(OffPolicyEstimator):
    """V = (1/n) Σ_i [Σ_a π(a | x_i) q̂(x_i, a) + w_i (r_i − q̂(x_i, a_i))].

    Consistent if either the propensities or the model q̂ of the rewards is right. The better the
    model, the smaller the variance.

    Reference: Dudík, Langford and Li (2011).
    """

    short = "dr"

    def terms(self, evidence: Evidence) -> Terms:
        return weighted(evidence, evidence.weight, corrects_model=True)


@dataclass(frozen=True)
class SelfNormalizedDoublyRobust(OffPolicyEstimator):
    """V = (1/n) Σ_i Σ_a π(a | x_i) q̂(x_i, a) + Σ_i w_i (r_i − q̂(x_i, a_i)) / Σ_i w_i.

    As ``dr``, but the correction of the model does not depend on how much the weights of this log
    happen to add up to. It varies less than ``dr`` if the model is off by about the same
    everywhere, and it has a bias of the order 1/n. Without any weight it is ``dr``.

    Reference: Thomas and Brunskill (2016), the weighted doubly robust estimator, for one step.
    """

    short = "sndr"

    def terms(self, evidence: Evidence) -> Terms:
        weight = evidence.weight
        if not weight.any():
            return DoublyRobust().terms(evidence)
        low, high = evidence.reward_range
        reach = low - float(evidence.predicted.max()), high - float(evidence.predicted.min())
        error = evidence.reward - evidence.predicted
        return Terms(
            weight * error, weight, reach, counts=evidence.counts, offset=evidence.expected
        )


ROOT_PER_THRESHOLD = 3.0
"""√λ over a candidate threshold: a weight as large as the threshold is reduced by a tenth."""
ROOT_WITHOUT_SHRINKAGE = 100.0
"""√λ over the largest weight, for one more candidate: no weight is reduced by more than 1e-4."""


@dataclass(frozen=True)
class ShrunkDoublyRobust(ThresholdEstimator):
    """V = (1/n) Σ_i [Σ_a π(a | x_i) q̂(x_i, a) + λ w_i / (w_i² + λ) (r_i − q̂(x_i, a_i))].

    λ is the ``threshold``, chosen among values that hardly change weights which are not large.
    λ = ∞ is the doubly robust estimator, λ = 0 the direct method.

    Reference: Su, Dimakopoulou, Krishnamurthy and Dudík (2020), Doubly robust off-policy
    evaluation with shrinkage; these are their optimistic weights.
    """

    short = "dr-shrinkage"
    plain = DoublyRobust()

    def candidates(self, thresholds: Floats) -> Floats:
        roots = [*(ROOT_PER_THRESHOLD * thresholds), ROOT_WITHOUT_SHRINKAGE * thresholds[-1]]
        return np.array(roots) ** 2

    def limited(self, weight: Floats, threshold: float) -> Floats:
        return weight / (1 + weight**2 / threshold)

    def largest(self, weight: Floats, threshold: float) -> Floats:
        # Shrunk weights λ w / (w² + λ) are at most √λ / 2.
        return np.minimum(weight, np.sqrt(threshold) / 2)


@dataclass(frozen=True)
class SwitchDoublyRobust(ThresholdEstimator):
    """V = (1/n) Σ_i [Σ_a π(a | x_i) q̂(x_i, a) + w_i 1(w_i ≤ τ) (r_i − q̂(x_i, a_i))].

    A row whose weight exceeds the ``threshold`` τ is estimated by the model alone. τ = ∞ is the
    doubly robust estimator, τ = 0 the direct method.

    Reference: Wang, Agarwal and Dudík (2017), Optimal and adaptive off-policy evaluation in
    contextual bandits.
    """

    short = "switch-dr"
    plain = DoublyRobust()

    def limited(self, weight: Floats, threshold: float) -> Floats:
        return np.where(weight <= threshold, weight, 0.0)


@dataclass(frozen=True)
class PseudoInverse(OffPolicyEstimator):
    """V = (1/n) Σ_i (1 − S + Σ_s π_s(a_is | x_i) / p_is) r_i over S slots.

    The weights of the slots are added, not multiplied, so they do not grow exponentially with
    the number of slots. Unbiased if the expected reward is a sum of one effect of each slot, and
    the log chose the slots independently of each other, each with its propensity p_s.

    Reference: Swaminathan et al. (2017), Off-policy evaluation for slate recommendation; for
    slots chosen independently their pseudo-inverse has this form.
    """

    short = "pseudo-inverse"
    relies_on = "slots", "propensities", "single decisions"

    def terms(self, evidence: Evidence) -> Terms:
        slots = self.required(evidence.slot_weight)
        return weighted(evidence, 1 - slots.shape[1] + slots.sum(axis=1))


@dataclass(frozen=True)
class Trajectory(OffPolicyEstimator):
    """V = Σ_i w_i,1:T Σ_t r_it / Σ_i w_i,1:T T_i over sessions i of T_i steps.

    Every row of a session has the weight of the whole session, the product of the weights of all
    its decisions. V is the reward per decision. It varies more than ``per-decision``, and serves
    as a check of it. Consistent if the propensities are right.

    Reference: Precup, Sutton and Singh (2000), Eligibility traces for off-policy policy evaluation.
    """

    short = "trajectory"
    relies_on = "sessions", "propensities"

    def terms(self, evidence: Evidence) -> Terms:
        _, _, whole = self.required(evidence.sessions).T
        return Terms(whole * evidence.reward, whole, counts=evidence.counts)


@dataclass(frozen=True)
class PerDecision(OffPolicyEstimator):
    """V = Σ_i Σ_t w_i,1:t r_it / Σ_i Σ_t w_i,1:t−1 over sessions i, with w_i,1:t = Π_s≤t w_is.

    The reward of a step is weighted by all decisions of its session up to this step, because
    earlier decisions changed what came after. The denominator is the expected number of steps of
    a session under the policy, so V is the reward per decision even if the policy makes
    sessions longer. Consistent if the propensities are right.

    Reference: Precup, Sutton and Singh (2000), Eligibility traces for off-policy policy
    evaluation, for the numerator.
    """

    short = "per-decision"
    relies_on = "sessions", "propensities"

    def terms(self, evidence: Evidence) -> Terms:
        before, through, _ = self.required(evidence.sessions).T
        return Terms(through * evidence.reward, before, counts=evidence.counts)


OFF_POLICY: Registry[OffPolicyEstimator] = Registry(
    "submax.evaluation.off_policy",
    OffPolicyEstimator,  # type: ignore[type-abstract]  # a contract is abstract
    "off-policy estimator",
    {
        kind.short: f"{__name__}:{kind.__name__}"
        for kind in (
            *(ClippedInversePropensity, DirectMethod, DoublyRobust, InversePropensity),
            *(PerDecision, PseudoInverse, Replay, SelfNormalized),
            *(SelfNormalizedDoublyRobust, ShrunkDoublyRobust, SwitchDoublyRobust, Trajectory),
        )
    },
)
"""All off-policy estimators by name; others are added by the entry point group."""


def make_off_policy(specification: str | Mapping[str, Any]) -> OffPolicyEstimator:
    """Make an estimator from its name, or from a table with ``kind`` and parameters.

    >>> make_off_policy("snips")
    SelfNormalized()
    >>> make_off_policy({"kind": "clipped", "threshold": 10})
    ClippedInversePropensity(threshold=10.0)
    """
    table = {"kind": specification} if isinstance(specification, str) else specification
    if not isinstance(table, Mapping):
        raise InputError(
            f"the off-policy estimator is {specification!r}: give a name such as 'dr', "
            "or a table with 'kind' and parameters"
        )
    return OFF_POLICY.build(table, {})
