"""The tracking strategy."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import Positive
from submax.core.conditioning import (
    SampleSizes,
    Strategy,
    StrategyRequirements,
    Table,
    normalized,
)
from submax.core.errors import InputError
from submax.core.numerics import decreasing_root

CONFIDENCE_FACTOR = 44.0
"""κ = CONFIDENCE_FACTOR / (N^0.3 t^0.2); chosen by search on tuning seeds, see docs/research."""
SMALLEST_CONFIDENCE, LARGEST_CONFIDENCE = 1.0, 6.0
"""Bounds of κ while there are few observations, from the same search."""
GROWTH_DELAY = 5.0
"""κ is at least ln(t / (GROWTH_DELAY · N)), so in the long run no action is given up."""
FULL_HORIZON_ARMS = 2.0
"""With K actions, κ of an action is at least ln(t kl / (K / FULL_HORIZON_ARMS)³). The power is such
that ten or more actions are hardly affected. Chosen on tuning seeds, see docs/research."""
SMALLEST_BATCH = 20.0
"""A batch of fewer decisions than this counts as this many; from the same search."""
PLACE_TOLERANCE, TOTAL_TOLERANCE = 1e-12, 1e-4
"""When the search for the threshold ends: tolerance of the logarithm of its height above the best
value, and of the logarithm of the total number of missing observations."""
EDGE = 1e-12
"""Values are kept this far from 0 and 1, and the threshold this far above the best value."""
TINY = 1e-150
"""Replaces 0 in numbers that are divided by; its square is still a number above 0."""
LOWEST, HIGHEST = np.log(EDGE), np.log(60.0)
"""Bounds of the logarithm of the threshold's height above the best value, in logits."""


class Divergence(NamedTuple):
    """The divergence kl(v, L) of every action's value v from a threshold L.

    The threshold lies e^place above the best value, in logits. With h = logit L − logit v and
    g = v (e^h − 1): kl(v, L) = ln(1 + g) − v h, and L − v = (1 − v) g / (1 + g). Above one half
    the same formulas are used for 1 − v and −h, which keeps rounding errors small. ``rarer`` is v
    or 1 − v, ``side`` is the sign of h, and ``below`` is h if L is the best value.
    """

    rarer: Floats
    side: Floats
    below: Floats

    @classmethod
    def of(cls, value: Floats) -> Self:
        """Return the divergences of actions with these values, ``[..., M]``."""
        logit = np.log(value) - np.log1p(-value)
        side = np.where(value > 0.5, -1.0, 1.0)
        below = side * (logit.max(axis=-1, keepdims=True) - logit)
        return cls(np.minimum(value, 1 - value), side, below)

    def at(self, place: Floats) -> tuple[Floats, Floats]:
        """Return the divergence and its derivative with respect to the place, (L − v) e^place."""
        above = np.exp(place)
        height = self.below + self.side * above
        growth = self.rarer * np.expm1(height)
        divergence = np.maximum(np.log1p(growth) - self.rarer * height, TINY)
        return divergence, (self.side * above) * ((1 - self.rarer) * growth / (1 + growth))


@dataclass(frozen=True)
class Tracking(Strategy):
    """Give the next decisions to the actions that lack observations.

    If an action has the value v and s observations, the probability that it is as good as a
    threshold L is about exp(−s kl(v, L)), where kl is the divergence between Bernoulli
    distributions. To make this probability e^−κ takes κ / kl(v, L) observations. The decisions go
    where observations are missing:

        π(a) ∝ max(κ / kl(v_a, L) − s_a, 0).

    The threshold L lies as far above the best value as is necessary for the N decisions of the
    next batch to make up exactly for what is missing. The rule has the form of SubMax, the positive
    part of a difference, with numbers of observations in the place of probabilities. Actions near
    the best get most decisions, an action that was hardly tried gets a few, and an action that is
    known to be bad gets none.

    κ = 44 / (N^0.3 t^0.2), with t the observations so far, clipped to 1 … 6, and at least
    ln(t / 5N): decisions of the same batch cannot learn from each other, so a large batch asks for
    less; what is learned early pays for longest; in the long run no action is given up. N counts
    as at least 20. With K actions, κ of an action is at least ln(t kl(v_a, v*) / (K/2)³), where v*
    is the best value, see ``persistence``. κ is multiplied by ``confidence_scale``; the presets
    with networks have 0.3, chosen among four values on tuning seeds.

    v and s come from the table: with m_l the observations that π(· | l) is worth, s_a =
    Σ_l m_l π(a | l), and v_a is the mean of the levels weighted by these terms, scaled to 0 … 1.

    Not in the paper; see docs/research. Reference: the divergence is that of Garivier and Cappé
    (2011); tracking a target number of observations follows Garivier and Kaufmann (2016).
    """

    traits: ClassVar[StrategyRequirements] = StrategyRequirements(
        needs_listing=True, needs_sample_sizes=True, grouped_draws=True
    )

    confidence_scale: Positive = 1.0

    def probabilities(self, table: Table) -> Floats:
        if table.sample_sizes is None:
            raise InputError(
                "the tracking strategy needs a table with sample_sizes: use it in a policy "
                "such as RewardConditioned, or set Table(sample_sizes=...)"
            )
        value, worth = _estimates(table, table.sample_sizes)
        decisions = np.maximum(table.sample_sizes.decisions, 1.0)[..., None]
        observed = table.sample_sizes.observations[..., None]
        divergences = Divergence.of(value)
        kappa = np.maximum(confidence(observed, decisions), persistence(observed, divergences))
        missing = _missing(value, worth, divergences, self.confidence_scale * kappa, decisions)
        # If only one level was observed, nothing distinguishes the actions.
        forget = np.count_nonzero(table.prior, axis=-1) < 2
        return normalized(missing, forget=forget)


def confidence(observations: Floats, decisions: Floats) -> Floats:
    """Return κ, how certain to become that an action is not the best.

    >>> confidence(np.array([100.0, 5000.0, 10.0**30]), np.array([100.0, 1000.0, 1.0])).round(2)
    array([ 4.4 ,  1.01, 64.47])
    """
    observed, batch = np.maximum(observations, 1.0), np.maximum(decisions, SMALLEST_BATCH)
    factor = CONFIDENCE_FACTOR / (batch**0.3 * observed**0.2)
    early = np.clip(factor, SMALLEST_CONFIDENCE, LARGEST_CONFIDENCE)
    late = np.log(np.maximum(observed / (GROWTH_DELAY * batch), 1.0))
    return np.maximum(early, late)


def persistence(observations: Floats, divergences: Divergence) -> Floats:
    """Return the least κ of every action, which is large if there are few actions, ``[..., M]``.

    A share e^−κ of t decisions adds up to 1 / kl observations, as many as it takes to notice an
    error, if κ = ln(t kl). Thompson sampling (Agrawal and Goyal, 2012) tries an action that looks
    worse about as often.

    >>> persistence(np.array([10000.0]), Divergence.of(np.array([0.5, 0.3]))).round(2)
    array([0.  , 6.71])
    """
    gap, _ = divergences.at(np.full_like(divergences.below[..., :1], LOWEST))
    crowd = (gap.shape[-1] / FULL_HORIZON_ARMS) ** 3
    return np.log(np.maximum(np.maximum(observations, 1.0) * gap / crowd, 1.0))


def _estimates(table: Table, sizes: SampleSizes) -> tuple[Floats, Floats]:
    """Return the value of every action, scaled to 0 … 1, and the observations it is worth."""
    mass = sizes.observation_weight[..., None] * table.probabilities
    observations = mass.sum(axis=-2)
    levels = table.levels - table.levels[..., :1]
    span = levels[..., -1:]
    height = levels / np.where(span > 0, span, 1.0)
    earned = (height[..., None] * mass).sum(axis=-2)
    value = earned / np.maximum(observations, TINY)
    return np.clip(value, EDGE, 1 - EDGE), observations


def _missing(
    value: Floats, observations: Floats, divergences: Divergence, kappa: Floats, decisions: Floats
) -> Floats:
    """Return the missing observations of every action, ``[..., M]``; they sum to the decisions.

    The actions that lack observations shall have Σ κ / kl(v, L) of them together, and the others
    keep theirs. This total falls about as the inverse square of the threshold's height above the
    best value: in logarithms nearly a straight line, so Newton's method needs few steps.
    """
    best = value.max(axis=-1, keepdims=True)
    wanted = observations.sum(axis=-1, keepdims=True) + decisions

    def excess(place: Floats) -> tuple[Floats, Floats]:
        divergence, rise = divergences.at(place)
        target = kappa / divergence
        total = np.maximum(target, observations).sum(axis=-1, keepdims=True)
        fall = ((target > observations) * target * (rise / divergence)).sum(axis=-1, keepdims=True)
        # Relative to the decisions, of which the missing observations are a part.
        scale = wanted / decisions
        return scale * np.log(total / wanted), -scale * fall / total

    # The search starts where the best action alone would get all decisions, if kl is approximated
    # by its second-order expansion.
    leading = np.where(value == best, observations, 0.0).max(axis=-1, keepdims=True)
    of_best = np.where(value == best, kappa, 0.0).max(axis=-1, keepdims=True)
    start = np.log(2 * of_best / (best * (1 - best) * (leading + decisions))) / 2
    start = np.minimum(np.maximum(start, LOWEST), HIGHEST)
    bounds = np.full_like(start, LOWEST), np.full_like(start, HIGHEST)
    place = decreasing_root(excess, start, *bounds, PLACE_TOLERANCE, TOTAL_TOLERANCE)
    divergence, _ = divergences.at(place)
    missing: Floats = np.maximum(kappa / divergence - observations, 0.0)
    # With very large counts, rounding can leave nothing missing: then the best action is chosen.
    return np.where(missing.any(axis=-1, keepdims=True), missing, value == best)
