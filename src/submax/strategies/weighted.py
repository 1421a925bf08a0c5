"""Strategies that weight the reward levels: optimistic, optimized, SubMax and their relatives."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import NonNegative, Positive, probability
from submax.core.conditioning import (
    SUM_TOLERANCE,
    StrategyRequirements,
    Table,
    WeightedStrategy,
    ends,
)
from submax.core.errors import InputError


@dataclass(frozen=True)
class Optimistic(WeightedStrategy):
    """Condition on the highest reward level: w = (0, …, 0, 1).

    Reference: Xu et al. (2024), section 3.2; Kumar et al. (2019).
    """

    def weights(self, table: Table) -> Floats:
        return ends(table, 0.0, 1.0)


@dataclass(frozen=True)
class Optimized(WeightedStrategy):
    """The λ that earns most among those that give a policy without clipping.

    R(λ) = λ (V₁ − V₀) + constant is linear, with V the importance-sampled rewards in
    ``table.values``, so the best λ is a bound: the highest if V₁ ≥ V₀, else the lowest. The policy
    is (1 − λ) p₀ + λ p₁.

    Reference: Xu et al. (2024), equations objective-is and bounds.

    *Departs from the paper:* the labels of its two sets of bounds are swapped; see ``bounds``.
    """

    traits: ClassVar[StrategyRequirements] = StrategyRequirements(
        needs_listing=True, needs_values=True
    )

    def weights(self, table: Table) -> Floats:
        if not np.all(np.isfinite(table.values)):
            raise InputError(
                "the optimized strategy needs the logged probability of every rewarded decision: "
                "log propensities, or use another strategy, such as submax"
            )
        low, high = table.probabilities[..., 0, :], table.probabilities[..., -1, :]
        lowest, highest = bounds(low, high)
        chosen = np.where(table.values[..., -1] >= table.values[..., 0], highest, lowest)
        return ends(table, 1.0 - chosen, chosen)


def bounds(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The λ with (1 − λ) p₀ + λ p₁ ≥ 0 for every action; ``[..., M]`` twice ``-> [...]`` twice.

    An action with p₁ > p₀ gives the lower bound −p₀ / (p₁ − p₀), one with p₁ < p₀ the upper bound
    p₀ / (p₀ − p₁); the tightest come from the largest and the smallest ratio p₁ / p₀. Hence lowest
    ≤ 0 and highest ≥ 1. If p₀ = p₁ up to rounding errors, every λ gives the same policy, and both
    bounds are 1.

    >>> bounds(np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.25, 0.5]))
    (array(-1.), array(2.))
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = high / low
    # An action with probability 0 at both levels gives 0 / 0 = NaN, and no bound.
    above = np.fmax.reduce(ratio, axis=-1) - 1
    below = 1 - np.fmin.reduce(ratio, axis=-1)
    same = (above < SUM_TOLERANCE) | (below < SUM_TOLERANCE)
    return (
        np.where(same, 1.0, -1 / np.where(same, 1.0, above)),
        np.where(same, 1.0, 1 / np.where(same, 1.0, below)),
    )


@dataclass(frozen=True)
class SubMax(WeightedStrategy):
    """Subtract the lowest level from the highest, keep what is positive.

    π(a) = normalize(max(p₁(a) − p₀(a), 0)), with p₀ and p₁ the rows of the lowest and highest
    level. It is the limit of the clipped policy as λ → ∞; its weights −1 and 1 sum to zero instead
    of one. With q the logging policy, v the value of an arm and v̄ its mean under q,
    p₁ − p₀ = q (v − v̄) / (v̄ (1 − v̄)): one step of policy improvement by positive advantage. The
    policy is uniform if no action is likelier given a high reward than given a low one, and until
    both levels have been observed.

    >>> import numpy as np
    >>> table = Table(
    ...     probabilities=np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
    ...     levels=np.array([0.0, 1.0]), prior=np.array([0.9, 0.1]), values=np.array([0.1, 0.2]),
    ... )
    >>> SubMax().probabilities(table).tolist()
    [0.0, 0.0, 1.0]

    Reference: Xu et al. (2024), equation gm-inference-submax.
    """

    def weights(self, table: Table) -> Floats:
        return ends(table, -1.0, 1.0)


@dataclass(frozen=True)
class Target(WeightedStrategy):
    """Marginalize over a target distribution of rewards: w_l = q(r_l), never negative.

    ``distribution`` is q, one probability for each level, lowest first. (1, 0) is the negative
    policy, (0, 1) the optimistic one. "observed" fits q to the rewards so far: the probability of a
    level is how often it was observed.

    Reference: Kumar et al. (2019), algorithm 1; Xu et al. (2024), introduction.
    """

    distribution: tuple[float, ...] | Literal["observed"] = (0.1, 0.9)

    def __post_init__(self) -> None:
        if self.distribution == "observed":
            return
        for value in self.distribution:
            probability("each number of distribution", value)
        if not np.isclose(sum(self.distribution), 1.0):
            raise InputError(
                "distribution must be probabilities of the reward levels that sum to 1, "
                f"not {self.distribution}"
            )

    def weights(self, table: Table) -> Floats:
        if self.distribution == "observed":
            return table.prior
        self.check_levels(table.levels.shape[-1])
        return np.broadcast_to(np.array(self.distribution), table.prior.shape)

    def check_levels(self, levels: int) -> None:
        if self.distribution != "observed" and len(self.distribution) != levels:
            raise InputError(
                f"distribution has {len(self.distribution)} probabilities, "
                f"but the problem has {levels} reward levels"
            )


@dataclass(frozen=True)
class Clipped(WeightedStrategy):
    """One λ for all tables, negative mass clipped: w = (1 − λ, λ) on lowest and highest level.

    π(a) = normalize(max(λ p₁(a) − (λ − 1) p₀(a), 0)). λ = 1 is optimistic, λ up to the bound of
    the optimized policy clips nothing, λ → ∞ is SubMax.
    """

    weight: NonNegative = 4.0

    def weights(self, table: Table) -> Floats:
        return ends(table, 1.0 - self.weight, self.weight)


@dataclass(frozen=True)
class Tilted(WeightedStrategy):
    """Marginalize over a target distribution w_l ∝ p_l exp(r_l / (β s)), never negative.

    p_l is how often level l occurs, r_l its reward, and s the standard deviation of rewards under
    p. β is ``temperature``: the lower, the more weight have high rewards. Of all distributions with
    the same mean, this one has the smallest divergence from p. As β → 0 it is the optimistic
    policy on the highest level that occurs, as β → ∞ the logging policy.

    Reference: Kumar et al. (2019), section 4.

    *Departs from the paper:* p is the distribution of a few levels, not a normal one, and β is
    measured in standard deviations.

    >>> table = Table(
    ...     probabilities=np.array([[0.2, 0.8], [0.8, 0.2]]), levels=np.array([0.0, 1.0]),
    ...     prior=np.array([0.5, 0.5]), values=np.full(2, np.nan),
    ... )
    >>> Tilted(temperature=2.0).weights(table).round(3).tolist()
    [0.269, 0.731]
    """

    temperature: Positive = 0.5

    def weights(self, table: Table) -> Floats:
        mean = (table.prior * table.levels).sum(axis=-1, keepdims=True)
        square = (table.prior * (table.levels - mean) ** 2).sum(axis=-1, keepdims=True)
        spread = np.where(square > 0, np.sqrt(square), 1.0)
        # Levels that never occur are left out of the maximum, which only avoids an overflow.
        power = (table.levels - mean) / (self.temperature * spread)
        power = np.where(table.prior > 0, power, -np.inf)
        mass = table.prior * np.exp(power - power.max(axis=-1, keepdims=True))
        return mass / mass.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class Advantage(WeightedStrategy):
    """Weigh every level by how far its reward lies above the mean: w_l = p_l (r_l − r̄).

    p is the prior of the levels, r their rewards and r̄ = Σ_l p_l r_l. Since p_l π(a | l) =
    q(a) p(l | a), with q the logging policy, the mixture is q(a) (v(a) − v̄): one step of policy
    improvement by positive advantage, with v(a) the mean reward of a after rewards are rounded to
    levels. With two levels it is SubMax. With more levels it prefers actions with a high mean
    reward, while SubMax prefers actions that sometimes earn the highest reward.

    >>> table = Table(
    ...     probabilities=np.array([[0.2, 0.8], [0.8, 0.2], [0.4, 0.6]]),
    ...     levels=np.array([0.0, 1.0, 3.0]), prior=np.array([0.5, 0.3, 0.2]),
    ...     values=np.full(3, np.nan),
    ... )
    >>> Advantage().weights(table).round(2).tolist()
    [-0.45, 0.03, 0.42]
    """

    def weights(self, table: Table) -> Floats:
        """Return weights that sum to zero; a level that was never observed has weight 0."""
        # r_l − r̄ = Σ_k p_k (r_l − r_k), term by term, so equal levels cancel exactly.
        apart = table.levels[..., :, None] - table.levels[..., None, :]
        return table.prior * np.einsum("...k,...lk->...l", table.prior, apart)
