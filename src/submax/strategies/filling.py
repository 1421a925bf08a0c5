"""The filling strategy."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.core.conditioning.marginalization import ends, normalized
from submax.core.conditioning.strategy import Strategy
from submax.core.conditioning.table import Experience, Table
from submax.core.errors import InputError
from submax.core.numerics.falling_root import falling_root

DEMAND = 44.0
"""κ = DEMAND / (N^0.3 t^0.2): found by trying, see docs/research."""
LEAST, MOST = 1.0, 6.0
"""Between which κ stays at first."""
PATIENCE = 5.0
"""κ is at least ln(t / (PATIENCE · N)) times the demand: no action is given up for good."""
SINGLE = 20.0
"""Fewer decisions at a time than this count as so many."""
CLOSE, ENOUGH = 1e-12, 1e-4
"""When the mark is found: in the logarithm of its height, and in that of what it fills."""
EDGE = 1e-12
"""Values are kept so far from 0 and 1, and the mark so far above the best of them."""
TINY = 1e-150
"""Stands for 0 where it must be divided by, and squared."""
LOWEST, HIGHEST = np.log(EDGE), np.log(60.0)
"""Between which the logarithm of the mark's height lies."""


class Arms(NamedTuple):
    """What is known of every action: its ``value`` between 0 and 1, and the ``evidence`` for it."""

    value: Floats
    evidence: Floats


class Distance(NamedTuple):
    """How far every action is from a mark L that lies e^place above the best, in logits.

    With h = logit L − logit v and g = v (e^h − 1): kl(v, L) = ln(1 + g) − v h, and
    L − v = (1 − v) g / (1 + g). Above one half the same holds of 1 − v, with −h: so little is lost
    by subtracting. ``rarer`` is v or 1 − v, ``side`` the sign of h, ``below`` is h where L is the
    best value.
    """

    rarer: Floats
    side: Floats
    below: Floats

    @classmethod
    def of(cls, value: Floats) -> Self:
        """Of actions with these values, ``[..., M]``."""
        logit = np.log(value) - np.log1p(-value)
        side = np.where(value > 0.5, -1.0, 1.0)
        below = side * (logit.max(axis=-1, keepdims=True) - logit)
        return cls(np.minimum(value, 1 - value), side, below)

    def to_mark(self, place: Floats) -> tuple[Floats, Floats]:
        """The divergence, and its derivative by the place, which is (L − v) e^place."""
        above = np.exp(place)
        height = self.below + self.side * above
        growth = self.rarer * np.expm1(height)
        divergence = np.maximum(np.log1p(growth) - self.rarer * height, TINY)
        return divergence, (self.side * above) * ((1 - self.rarer) * growth / (1 + growth))


@dataclass(frozen=True)
class Filling(Strategy):
    """Fill the evidence up: demand most of it of the actions that may yet be the best.

    An action of value v whose evidence is worth s observations is as good as a mark L with a
    probability of about exp(−s kl(v, L)), where kl is the divergence between Bernoulli
    distributions. To exclude it to the degree e^−κ takes an evidence of κ / kl(v, L). The next
    decisions go where evidence is missing,

        π(a) ∝ max(κ / kl(v_a, L) − s_a, 0),

    and the mark L lies as far above the best value as it must for the N decisions that come
    before the next rewards to fill exactly what is missing. It has the form of SubMax, what is
    wanted minus what is there where that is positive, with evidence in the place of
    probabilities. Actions near the best get the most; one that was hardly tried gets a few; one
    known to be bad gets none.

    κ = 44 / (N^0.3 t^0.2) with t the observations so far, between 1 and 6, and at least
    ln(t / 5N): decisions that cannot learn from each other should demand less at a time, what is
    learned early pays longest, and in the long run nothing is given up. N counts as 20 at least.
    All of it times ``demand``: less than 1 for estimators that draw values together, as networks
    do that are stopped early, so that values look nearer to each other than they are.

    v and s are read off the table: with m_l the evidence behind π(· | l), s_a = Σ_l m_l π(a | l)
    and v_a is the mean of the levels weighted by these terms, scaled to between 0 and 1.

    Reference: the divergence as in Garivier and Cappé (2011); filling what is missing of a demand
    as in Garivier and Kaufmann (2016), on tracking.
    """

    needs_table: ClassVar[bool] = True
    needs_experience: ClassVar[bool] = True
    gives_lots: ClassVar[bool] = True

    demand: float = 1.0

    def __post_init__(self) -> None:
        positive("demand", self.demand)

    def weights(self, table: Table) -> Floats:
        """Those of SubMax, whose form it has."""
        return ends(table, -1.0, 1.0)

    def probabilities(self, table: Table) -> Floats:
        """Find the mark and fill up to it."""
        if table.experience is None:
            raise InputError("the filling strategy must be told how much evidence there is")
        arms = _arms(table, table.experience)
        decisions = np.maximum(table.experience.decisions, 1.0)[..., None]
        demand = self.demand * demanded(table.experience.observations[..., None], decisions)
        missing = _filled(arms, demand, decisions)
        # Of two levels something must have been seen: one alone tells no action from another.
        forget = np.count_nonzero(table.prior, axis=-1) < 2
        return normalized(missing, forget=forget)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """As for counts, and for networks."""
        yield cls()
        yield cls(0.3)


def demanded(observations: Floats, decisions: Floats) -> Floats:
    """κ: how sure to become about an action that is not the best.

    >>> demanded(np.array([100.0, 5000.0, 10.0**30]), np.array([100.0, 1000.0, 1.0])).round(2)
    array([ 4.4 ,  1.01, 64.47])
    """
    observed, batch = np.maximum(observations, 1.0), np.maximum(decisions, SINGLE)
    early = np.clip(DEMAND / (batch**0.3 * observed**0.2), LEAST, MOST)
    late = np.log(np.maximum(observed / (PATIENCE * batch), 1.0))
    kept: Floats = np.maximum(early, late)
    return kept


def _arms(table: Table, experience: Experience) -> Arms:
    mass = experience.evidence[..., None] * table.probabilities
    evidence = mass.sum(axis=-2)
    levels = table.levels - table.levels[..., :1]
    span = levels[..., -1:]
    height = levels / np.where(span > 0, span, 1.0)
    earned = (height[..., None] * mass).sum(axis=-2)
    value = earned / np.maximum(evidence, TINY)
    return Arms(np.clip(value, EDGE, 1 - EDGE), evidence)


def _filled(arms: Arms, demand: Floats, decisions: Floats) -> Floats:
    """The evidence missing of every action, ``[..., M]``, which sums to the decisions.

    What is missing falls as the mark rises, about as the inverse square of its height over the
    best value: in logarithms nearly a line.
    """
    value, evidence = arms
    best = value.max(axis=-1, keepdims=True)
    distance = Distance.of(value)
    wanted = np.log(decisions)

    def excess(place: Floats) -> tuple[Floats, Floats]:
        divergence, rise = distance.to_mark(place)
        full = demand / divergence
        missing = np.maximum(full - evidence, 0.0)
        total = np.maximum(missing.sum(axis=-1, keepdims=True), TINY)
        fall = ((missing > 0) * full * (rise / divergence)).sum(axis=-1, keepdims=True)
        return np.log(total) - wanted, -fall / total

    # Where the best action alone is filled, with the variance of its value.
    leading = np.where(value == best, evidence, 0.0).max(axis=-1, keepdims=True)
    start = np.log(2 * demand / (best * (1 - best) * (leading + decisions))) / 2
    start = np.minimum(np.maximum(start, LOWEST), HIGHEST)
    bounds = np.full_like(start, LOWEST), np.full_like(start, HIGHEST)
    divergence, _ = distance.to_mark(falling_root(excess, start, *bounds, CLOSE, ENOUGH))
    missing: Floats = np.maximum(demand / divergence - evidence, 0.0)
    # Where counts are so large that nothing is missing but by rounding, the best action is all.
    return np.where(missing.any(axis=-1, keepdims=True), missing, value == best)
