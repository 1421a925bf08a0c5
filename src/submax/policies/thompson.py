"""Thompson sampling with Beta posteriors."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.polynomial import legendre

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import Allowed, at_least, instance_of
from submax.core.policy import PolicyTraits, TabularPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.models.memory import Memory
from submax.policies.arm_statistics import ArmPolicy, ArmStatistics

NEGLIGIBLE = 1e-12
"""Probabilities below this are neglected."""
NODES_PER_PANEL = 16
PANELS = np.array([8, 16, 32, 64, 128])
"""The numbers of panels that can be used for a replica."""
DETAIL_LIMITS = np.array([45.0, 130.0, 300.0, 600.0])
"""The largest detail, see `_panels`, for which the first, second, … number of panels keeps the
error below 1e-9. Found by experiments; the tests check it."""
WIDEST_SPREAD = 0.3
"""A density is never taken to be wider than this, because a skewed one falls faster on one side."""
VARIABLES_PER_CHUNK = 2**13
"""How many variables are integrated together, which limits the memory."""


class Groups(NamedTuple):
    """Groups of ``members`` equal variables Beta(a, b), ordered by ``replica``.

    ``first [R]`` is the index of each replica's first group.
    """

    replica: Integers
    a: Floats
    b: Floats
    members: Floats
    first: Integers

    def over(self, values: Floats) -> Floats:
        """Sum over the groups of each replica, along the first axis."""
        return np.add.reduceat(values, self.first, axis=0)

    def kept(self, wanted: Booleans, replicas: Booleans | None = None) -> "Groups":
        """The wanted groups; all those of other ``replicas`` are left out, which are renumbered."""
        replica, count = self.replica, len(self.first)
        if replicas is not None:
            replica, count = (np.cumsum(replicas) - 1)[replica], int(replicas.sum())
        first = np.searchsorted(replica[wanted], np.arange(count))
        return Groups(replica[wanted], self.a[wanted], self.b[wanted], self.members[wanted], first)

    @property
    def centre(self) -> Floats:
        """The logit of the mean of each group's variables."""
        return np.log(self.a / self.b)

    @property
    def spread(self) -> Floats:
        """The approximate standard deviation of the logit of each group's variables."""
        return np.sqrt(1 / self.a + 1 / self.b)

    @property
    def narrowest(self) -> Floats:
        return np.minimum.reduceat(self.spread, self.first)

    def exponent(self) -> Callable[[Floats], Floats]:
        """The exponent D of Chernoff's bound of every group, for its replica's logit ``[R]``."""
        # Computed once, because bisection needs them many times.
        total = self.a + self.b
        log_mean, log_rest = np.log(self.a / total), np.log(self.b / total)

        def at(logit: Floats) -> Floats:
            log_above, log_below = _log_parts(logit)
            below = self.a * (log_mean - log_below[self.replica])
            return below + self.b * (log_rest - log_above[self.replica])

        return at


class QuadratureRule(NamedTuple):
    """Gauss-Legendre quadrature on [0, 1], divided into equal panels.

    If f holds the values of a function at the nodes of one panel, ``f @ to_end`` are its integrals
    from each node to the end of the panel.
    """

    node: Floats
    weight: Floats
    to_end: Floats

    def tail(self, values: Floats) -> Floats:
        """Integrals from each node to 1 of functions given at the nodes: ``[G, N] -> [G, N]``."""
        panels = values.reshape(len(values), -1, NODES_PER_PANEL)
        tail: Floats = (panels.reshape(-1, NODES_PER_PANEL) @ self.to_end).reshape(panels.shape)
        whole = panels @ self.weight[:NODES_PER_PANEL]
        tail[:, :-1] += np.cumsum(whole[:, :0:-1], axis=1)[:, ::-1, None]
        return tail.reshape(values.shape)


def largest_beta(a: Floats, b: Floats) -> Floats:
    """Probability that each of the Beta(a, b) variables is the largest: ``[R, K] -> [R, K]``.

    The error in total variation is below 1e-8, and mostly below 1e-11, if a and b are between 0.05
    and 10⁵. Rounding of a ln x + b ln(1 − x) makes it grow with the parameters, to 1e-7 at 10⁷.

    >>> largest_beta(np.array([[1.0, 1.0, 2.0]]), np.array([[1.0, 1.0, 1.0]])).round(8).tolist()
    [[0.25, 0.25, 0.5]]
    """
    rows = max(1, VARIABLES_PER_CHUNK // a.shape[1])
    starts = range(0, len(a), rows)
    return np.concatenate([_chunk(a[i : i + rows], b[i : i + rows]) for i in starts])


def _chunk(a: Floats, b: Floats) -> Floats:
    groups, member = _grouped(a, b)
    start = _limit(groups, lower=True)
    possible = _can_exceed(groups, start)
    rivals = groups.kept(possible)
    end = _limit(rivals, lower=False)
    panels = _panels(rivals, start, end)
    integral = np.empty(len(rivals.a))
    for count in np.unique(panels):
        chosen = panels == count
        wanted = chosen[rivals.replica]
        integral[wanted] = _integrals(
            rivals.kept(wanted, chosen), start[chosen], end[chosen], _rule(int(count))
        )
    probability = np.zeros(len(groups.a))
    probability[possible] = integral
    result = probability[member].reshape(a.shape)
    return result / result.sum(axis=-1, keepdims=True)


def _grouped(a: Floats, b: Floats) -> tuple[Groups, Integers]:
    """Equal variables of a replica as one group, and the group of each variable."""
    replicas, size = a.shape
    replica = np.repeat(np.arange(replicas), size)
    order = np.lexsort((b.ravel(), a.ravel(), replica))
    replica, a, b = replica[order], a.ravel()[order], b.ravel()[order]
    new = np.ones(len(a), dtype=np.bool_)
    new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1]) | (replica[1:] != replica[:-1])
    begin = np.flatnonzero(new)
    member = np.empty(len(a), dtype=np.int64)
    member[order] = np.cumsum(new) - 1
    members = np.diff(begin, append=len(a)).astype(np.float64)
    first = np.searchsorted(replica[begin], np.arange(replicas))
    return Groups(replica[begin], a[begin], b[begin], members, first), member


def _panels(groups: Groups, start: Floats, end: Floats) -> Integers:
    """The number of panels that each replica needs: ``[R]``.

    It depends on the detail, the length of the logarithmic axis over the width that the narrowest
    density has on it. There the width of a density is its spread over its distance from the start.
    """
    narrowest = groups.narrowest
    distance = np.maximum(groups.centre - start[groups.replica], 0.0) + narrowest[groups.replica]
    detail = np.maximum.reduceat(distance / np.minimum(groups.spread, WIDEST_SPREAD), groups.first)
    detail *= np.log1p((end - start) / narrowest)
    return PANELS[np.searchsorted(DETAIL_LIMITS, detail)]


def _log_parts(logit: Floats) -> tuple[Floats, Floats]:
    """ln(1 − x) and ln x, where x has this logit."""
    log_above = -np.logaddexp(0.0, logit)
    return log_above, log_above + logit


def _limit(groups: Groups, *, lower: bool) -> Floats:
    """A logit ``[R]`` beyond which the largest variable lies with negligible probability.

    Bisection finds a point just outside the border up to which values are possible.
    """
    centre, exponent = groups.centre, groups.exponent()
    inside = np.maximum.reduceat(centre, groups.first)
    steepness = np.minimum.reduceat(groups.a if lower else groups.b, groups.first)
    width = 80 / np.minimum(1.0, steepness)
    outside = inside - width if lower else inside + width
    for _ in range(14):
        middle = (inside + outside) / 2
        here = middle[groups.replica]
        if lower:
            all_below = np.where(centre > here, groups.members * exponent(middle), 0.0)
            still = groups.over(all_below) < -np.log(NEGLIGIBLE)
        else:
            one_above = np.where(centre < here, np.exp(-exponent(middle)), 1.0)
            still = groups.over(groups.members * one_above) > NEGLIGIBLE
        inside, outside = np.where(still, middle, inside), np.where(still, outside, middle)
    return outside


def _can_exceed(groups: Groups, logit: Floats) -> Booleans:
    """Whether a group's variables lie above the logit with more than negligible probability."""
    limit = -np.log(NEGLIGIBLE / 10 / groups.over(groups.members))
    above = groups.centre > logit[groups.replica]
    return above | (groups.exponent()(logit) < limit[groups.replica])


def _integrals(groups: Groups, start: Floats, end: Floats, rule: QuadratureRule) -> Floats:
    """∫ f_k Π_{j≠k} F_j for one member k of every group, on an axis that is stretched by exp."""
    unit = groups.narrowest[:, None]
    stretch = np.log1p((end - start)[:, None] / unit)
    logit = start[:, None] + unit * np.expm1(stretch * rule.node)
    log_speed = np.log(stretch * unit) + stretch * rule.node
    log_above, log_below = _log_parts(logit)
    # Passes over these arrays are the main cost, so every step works in place.
    density = log_below[groups.replica]
    density *= groups.a[:, None]
    failures = log_above[groups.replica]
    failures *= groups.b[:, None]
    density += failures
    density += log_speed[groups.replica]
    density -= scipy.special.betaln(groups.a, groups.b)[:, None]
    np.exp(density, out=density)
    distribution = rule.tail(density)
    np.subtract(1.0, distribution, out=distribution)
    np.maximum(distribution, 1e-200, out=distribution)
    density /= distribution
    np.log(distribution, out=distribution)
    distribution *= groups.members[:, None]
    product = np.exp(groups.over(distribution)) * rule.weight
    return np.einsum("gn,gn->g", density, product[groups.replica])


@cache
def _rule(panels: int) -> QuadratureRule:
    node, weight = legendre.leggauss(NODES_PER_PANEL)
    coefficients = np.linalg.inv(legendre.legvander(node, NODES_PER_PANEL - 1))
    antiderivative = legendre.legint(coefficients)
    at_end = np.asarray(legendre.legval(1.0, antiderivative))
    to_panel_end = at_end[:, None] - legendre.legval(node, antiderivative)
    starts = np.arange(panels)[:, None]
    return QuadratureRule(
        node=((starts + (node + 1) / 2) / panels).ravel(),
        weight=np.tile(weight, panels) / (2 * panels),
        to_end=to_panel_end / (2 * panels),
    )


SMALLEST_PARAMETER = 0.05
"""The smallest Beta parameter for which the quadrature of `largest_beta` is accurate. With smaller
ones draws round to exactly 0 or 1, so arms tie."""
BetaParameter: TypeAlias = Annotated[float, Allowed(at_least, SMALLEST_PARAMETER)]
"""A parameter of the prior of an arm's value."""


QUADRATURE_FROM = 64
"""From this number of decisions on, computing the probabilities once by quadrature and drawing
from them costs less than sampling the posterior for each decision."""


@dataclass(frozen=True)
class Thompson(ArmPolicy, TabularPolicy[ArmStatistics]):
    """Draw a value for every arm from its Beta posterior and take the arm with the largest draw.

    The prior of every arm is Beta(α, β), its posterior Beta(α + successes, β + failures). α is
    ``alpha``, β is ``beta``. A reward between the lowest and the highest possible one counts as
    part of a success. π(a) is the probability that a's draw is the largest, ∫ f_a Π_{b≠a} F_b. Few
    decisions are made by sampling the posterior, many decisions by computing π once and drawing
    from it; both have the same distribution.

    Where arms change, the ``memory`` forgets successes and failures, but never the prior. With a
    ``discount`` γ both are multiplied by γ with every row of any arm, so an arm that is not taken
    returns to the prior; with a ``window`` the last rows of all arms together count.

    Reference: Thompson (1933); Chapelle and Li (2011); Raj and Kalyani (2017) for the discount;
    Trovò et al. (2020) for the window.
    """

    alpha: BetaParameter = 1.0
    beta: BetaParameter = 1.0
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        super().__post_init__()
        instance_of("memory", self.memory, Memory, "Memory()")

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(uses_context=False, forgets=self.memory.forgets)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ArmStatistics:
        problem.scale.known_bounds("Thompson sampling")
        return ArmStatistics.empty(problem, replicas, self.memory)

    def update(
        self, state: ArmStatistics, feedback: Feedback, rng: np.random.Generator
    ) -> ArmStatistics:
        return state.remembering(feedback, self.memory, rng)

    def act(self, state: ArmStatistics, context: Floats, rng: np.random.Generator) -> ChosenActions:
        rows = context.shape[1]
        if rows >= QUADRATURE_FROM:
            return super().act(state, context, rng)
        a, b = self._posterior(state)
        drawn = [rng.beta(a, b).argmax(axis=-1) for _ in range(rows)]
        index = np.stack(drawn, axis=1) if drawn else np.empty((len(a), 0), dtype=np.int64)
        return ChosenActions(state.problem.space.action(index), None)

    def probabilities(self, state: ArmStatistics, context: Floats) -> Floats:
        return largest_beta(*self._posterior(state))[:, None, :]

    def _posterior(self, state: ArmStatistics) -> tuple[Floats, Floats]:
        successes = state.successes("Thompson sampling")
        return self.alpha + successes, self.beta + state.pulls - successes
