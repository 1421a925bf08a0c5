"""From p(action | context, reward) to a policy: estimators, beliefs, strategies, and mixing.

Generalized marginalization mixes the conditioned policies with weights that may be negative.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats, Integers
from submax.core.checks import Checked
from submax.core.errors import InputError
from submax.core.numerics import draw
from submax.core.policy import PolicyTraits
from submax.core.problem import Feedback, Problem
from submax.core.spaces import Space


class SampleSizes(NamedTuple):
    """How many observations a table is based on, for strategies that need to know.

    ``observation_weight [..., L]`` is how many observations each row of probabilities is worth,
    smoothing included; ``observations [...]`` is how many there were; ``decisions [...]`` is how
    many decisions are made before the next feedback.
    """

    observation_weight: Floats
    observations: Floats
    decisions: Floats


class Table(NamedTuple):
    """Conditioned probabilities of M actions at L reward levels, lowest level first.

    ``probabilities [..., L, M]`` is π(a | c, level); ``levels [..., L]`` are the rewards
    conditioned on; ``prior [..., L]`` is how often each level was observed; ``values [..., L]`` is
    the importance-sampled reward of each conditioned policy, NaN if propensities are missing or the
    strategy does not need it; ``sample_sizes`` is None if the strategy does not need it.
    """

    probabilities: Floats
    levels: Floats
    prior: Floats
    values: Floats
    sample_sizes: SampleSizes | None = None


@lru_cache(16)
def unknown_values(shape: tuple[int, ...]) -> Floats:
    """Return NaNs. Cached: allocating them would dominate the latency of one decision."""
    values = np.full(shape, np.nan)
    values.setflags(write=False)
    return values


@dataclass(frozen=True)
class StrategyRequirements:
    """What a policy has to provide for a strategy, beyond the levels and their prior.

    - ``needs_listing``: the probability of every action; without it actions may also be drawn.
    - ``needs_values``: ``table.values``, which may otherwise be NaN.
    - ``needs_sample_sizes``: ``table.sample_sizes``, otherwise None.
    - ``grouped_draws``: decisions of one batch are drawn in groups, see ``draw_grouped``.
    """

    needs_listing: bool = False
    needs_values: bool = False
    needs_sample_sizes: bool = False
    grouped_draws: bool = False


class Strategy(Checked, ABC):
    """A decision rule: from the table of conditioned probabilities to the inference policy."""

    traits: ClassVar[StrategyRequirements] = StrategyRequirements(needs_listing=True)

    @abstractmethod
    def probabilities(self, table: Table) -> Floats:
        """Return the probability of every action: ``[..., L, M] -> [..., M]``."""

    def check_levels(self, levels: int) -> None:  # most take any number
        """Raise an InputError if the strategy cannot work with this number of reward levels."""


SUM_TOLERANCE = 8 * np.finfo(np.float64).eps
"""A difference of sums that is smaller than this share of the sums is a rounding error."""


def mixture(table: Table, weights: Floats) -> Floats:
    """Return the policy π‡(a) ∝ max(Σ_l w_l π(a | l), 0), with w_l the ``weights [..., L]``.

    The policy is uniform if the clipped mixture is zero everywhere, or if a level with a weight
    other than 0 was never observed: its conditioned policy then consists of smoothing, not of
    data. A sum that is positive only by a rounding error counts as zero.

    Reference: Xu et al. (2024), equations gm-inference and gm-inference-submax.
    """
    forget = None if table.prior.all() else unseen(table, weights)
    return normalized(clipped(weights, table.probabilities), forget)


def clipped(weights: Floats, probabilities: Floats) -> Floats:
    """Return max(Σ_l w_l π(a | l), 0), and 0 if the sum is positive only by a rounding error.

    ``[..., L]`` and ``[..., L, M] -> [..., M]``.
    """
    added = np.einsum("...l,...lm->...m", np.maximum(weights, 0.0), probabilities)
    mixed: Floats = np.einsum("...l,...lm->...m", weights, probabilities)
    # Computed in place, because with many actions memory traffic is most of the cost.
    added *= SUM_TOLERANCE
    mixed[mixed <= added] = 0.0
    return mixed


def mixture_of_one(probabilities: Floats, weights: Floats, forget: bool) -> Floats:
    """Return ``mixture`` of one row by fewer calls, ``[M]``; uniform with ``forget``."""
    mixed = np.dot(weights, probabilities)
    added = np.dot(np.maximum(weights, 0.0), probabilities)
    mass: Floats = np.where(mixed > SUM_TOLERANCE * added, mixed, 0.0)
    total = np.add.reduce(mass)
    if forget or total == 0:
        return np.full(len(mass), 1 / len(mass))
    mass *= 1 / total
    return mass


def ends(table: Table, lowest: float | Floats, highest: float | Floats) -> Floats:
    """Return weights ``[..., L]`` that are 0 except at the lowest and the highest level."""
    weights = np.zeros(table.prior.shape)
    weights[..., 0] = lowest
    weights[..., -1] = highest
    return weights


def unseen(table: Table, weights: Floats) -> Booleans:
    """Return whether a level with a weight other than 0 was never observed, ``[...]``."""
    return ((weights != 0) & (table.prior == 0)).any(axis=-1)


def normalized(mass: Floats, forget: Booleans | None = None) -> Floats:
    """Divide by the sum over the last axis; uniform if it is zero or ``forget [...]`` is set.

    >>> normalized(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    total = mass.sum(axis=-1, keepdims=True)
    empty = total == 0
    if forget is not None:
        empty |= forget[..., None]
    if np.count_nonzero(empty):
        mass, total = np.where(empty, 1.0, mass), np.where(empty, mass.shape[-1], total)
    return mass * (1 / total)


class WeightedStrategy(Strategy):
    """Generalized marginalization: π‡(a) ∝ max(Σ_l w_l π(a | l), 0), with weights of any sign.

    Unless its ``traits`` say that it needs a listing, the weights must not depend on
    ``table.probabilities``. Then actions can be drawn by rejection without being listed.

    Reference: Xu et al. (2024), equation gm-inference.
    """

    traits: ClassVar[StrategyRequirements] = StrategyRequirements()

    @abstractmethod
    def weights(self, table: Table) -> Floats:
        """Return the weight of every reward level, ``[..., L]``; weights may be negative."""

    def probabilities(self, table: Table) -> Floats:
        return mixture(table, self.weights(table))


class ConditionalDistribution(ABC):
    """p(action | context, reward level) for n contexts of each of R replicas."""

    @abstractmethod
    def prob(self, action: Actions) -> Floats:
        """Return the probability (or density) of M actions at every one of the L levels.

        ``action [R or 1, n or 1, M, S]`` gives ``[R, n, L, M]``.
        """

    @abstractmethod
    def sample(self, level: int, count: int, rng: np.random.Generator) -> Actions:
        """Draw ``count`` actions in every context at one level: ``[R, n, count, S]``."""

    @abstractmethod
    def rows(self, row: Integers) -> "ConditionalDistribution":
        """Return the distribution in some of the contexts: ``row [R, m]`` are their indices."""


FIRST_ROUND = 8
"""Proposals for each row in the first round; each later round makes twice as many."""
LIMIT = 2000
"""Proposals after which a row is given up and reported as exhausted."""


class RejectionDraws(NamedTuple):
    """Actions ``[R, n, S]``, and the rows in which no proposal was accepted, ``[R, n]``."""

    action: Actions
    exhausted: Booleans


def rejection(
    weights: Floats, belief: ConditionalDistribution, rng: np.random.Generator
) -> RejectionDraws:
    """Draw from π‡(a) ∝ max(Σ_l w_l π(a | l), 0), with ``weights [R, n, L]`` of any sign.

    An action is proposed by the positive part, Σ_l w_l⁺ π(a | l), and accepted with probability
    max(0, 1 − negative / positive), the negative part being Σ_l w_l⁻ π(a | l). This is exact. The
    action of a row that is exhausted, where no proposal was accepted, must not be used.
    """
    action, accepted = _round(weights, belief, FIRST_ROUND, rng)
    left = np.logical_not(accepted)
    count = made = FIRST_ROUND
    while made < LIMIT and left.any():
        # All replicas draw for equally many rows; draws for rows that are done are discarded.
        row = np.argsort(~left, axis=1, kind="stable")[:, : left.sum(axis=1).max()]
        count = min(2 * count, LIMIT - made)
        weight = np.take_along_axis(weights, row[..., None], axis=1)
        chosen, accepted = _round(weight, belief.rows(row), count, rng)
        replica, column = np.nonzero(np.take_along_axis(left, row, axis=1))
        target = (replica, row[replica, column])
        action[target], left[target] = chosen[replica, column], ~accepted[replica, column]
        made += count
    return RejectionDraws(action, left)


def _round(
    weight: Floats, belief: ConditionalDistribution, count: int, rng: np.random.Generator
) -> tuple[Actions, Booleans]:
    """Return the first accepted of ``count`` proposals in each row, and whether there is one."""
    proposal = _proposed(weight, belief, count, rng)
    probabilities = belief.prob(proposal)
    positive = (np.maximum(weight, 0.0)[:, :, None] @ probabilities)[:, :, 0]
    above = (weight[:, :, None] @ probabilities)[:, :, 0]
    # As in ``mixture``, a sum that is positive only by a rounding error counts as zero.
    accepted = np.maximum(rng.random(positive.shape), SUM_TOLERANCE) * positive < above
    # If none is accepted, argmax returns the first proposal, which the caller discards.
    which = accepted.argmax(axis=-1)
    replicas, rows = which.shape
    index = np.arange(0, replicas * rows * count, count).reshape(replicas, rows) + which
    chosen = proposal.reshape(replicas * rows * count, proposal.shape[-1]).take(index, axis=0)
    return chosen, np.logical_or.reduce(accepted, axis=-1)


def _proposed(
    weight: Floats, belief: ConditionalDistribution, count: int, rng: np.random.Generator
) -> Actions:
    positive = np.maximum(weight, 0.0)
    levels = np.flatnonzero(positive.any(axis=(0, 1)))
    if len(levels) <= 1:
        # If no weight is positive, nothing will be accepted, whatever the level.
        return belief.sample(int(levels[0]) if len(levels) else 0, count, rng)
    drawn = np.stack([belief.sample(int(level), count, rng) for level in levels])
    share = np.cumsum(positive[..., levels], axis=-1)
    uniform = rng.random((*weight.shape[:2], count)) * share[..., -1:]
    level = (uniform[..., None] >= share[:, :, None, :-1]).sum(axis=-1)
    return np.take_along_axis(drawn, level[None, ..., None], axis=0)[0]


DRAWS = 2000
"""Draws at each level with positive weight, from which the normalizing constant is estimated."""
DRAWS_PER_PART = 250
"""Draws that are held in memory at a time."""


class EstimatedDensity(NamedTuple):
    """``log_prob [R, n, M]``, or a log-density, and its standard ``error [R, n]``.

    Where ``known [R, n]`` is False, no draw had a positive mass, and neither must be used.
    """

    log_prob: Floats
    error: Floats
    known: Booleans


def estimated_density(
    weights: Floats, belief: ConditionalDistribution, action: Actions
) -> EstimatedDensity:
    """Estimate log max(Σ_l w_l π(a | l), 0) − log M, with M the sum, or integral, over all a.

    The normalizing constant is M = Σ_l w_l⁺ E_l[share(a)]. E_l is the expectation over actions
    drawn at level l, and share(a), between 0 and 1, is the part of Σ_l w_l⁺ π(a | l) that the
    negative weights leave. E_l is estimated by the mean over ``DRAWS`` draws from a generator with
    a fixed seed, so the same question has the same answer. The standard error of the logarithm
    is that of M divided by M. ``weights [R, n, L]``, ``action [R, n, M, S]``.
    """
    rng = np.random.default_rng(0)
    positive = np.maximum(weights, 0.0)
    mass, variance = np.zeros(weights.shape[:2]), np.zeros(weights.shape[:2])
    for level in np.flatnonzero(positive.any(axis=(0, 1))):
        shares = [
            _share(weights, belief.prob(belief.sample(int(level), DRAWS_PER_PART, rng)))
            for _ in range(DRAWS // DRAWS_PER_PART)
        ]
        share = np.concatenate(shares, axis=-1)
        mass += positive[..., level] * share.mean(axis=-1)
        variance += positive[..., level] ** 2 * share.var(axis=-1) / DRAWS
    known = mass > 0
    whole = np.where(known, mass, 1.0)
    mass_of_action = clipped(weights, belief.prob(action))
    with np.errstate(divide="ignore"):
        log_prob = np.log(mass_of_action) - np.log(whole)[..., None]
    return EstimatedDensity(log_prob, np.sqrt(variance) / whole, known)


def _share(weights: Floats, probabilities: Floats) -> Floats:
    proposed = np.einsum("rnl,rnlm->rnm", np.maximum(weights, 0.0), probabilities)
    return clipped(weights, probabilities) / np.where(proposed > 0, proposed, 1.0)


class Belief(ConditionalDistribution):
    """What an estimator has learned, evaluated in n contexts of each of R replicas.

    It gives p(action | context, reward level), the L reward levels, and how often each level
    occurs. Estimators whose actions can be listed return a `TabularBelief`.
    """

    @property
    @abstractmethod
    def space(self) -> Space:
        """The space of the actions."""

    @abstractmethod
    def levels(self) -> Floats:
        """Return the rewards that are conditioned on, lowest first: ``[R, L]``."""

    @abstractmethod
    def level_prior(self) -> Floats:
        """Return how often each level occurs, ``[R, n, L]``; exactly 0 for one never observed."""

    def prob_of_all(self) -> Floats:
        """Return the probability of every joint action, by its index: ``[R, n, L, space.size]``."""
        return self.prob(self.space.listing()[None, None])

    def prob_of_choices(self) -> list[Floats]:
        """Return each slot's probabilities, summed over the other slots: ``[R, n, L, choices]``."""
        return sums_by_slot(self.prob_of_all(), self.space.choices)

    def expected_rewards(self) -> Floats:
        """Return the expected reward of every joint action, ``[R, n, space.size]``.

        E[r | a] = Σ_l r_l p(l) p(a | l) / Σ_l p(l) p(a | l), by Bayes' rule. NaN if p(a | l) is 0
        at every level that was observed.
        """
        joint = self.prob_of_all() * self.level_prior()[..., None]
        total, earned = joint.sum(axis=2), np.einsum("rnla,rl->rna", joint, self.levels())
        result: Floats = np.full(total.shape, np.nan)
        np.divide(earned, total, out=result, where=total > 0)
        return result

    def values(self) -> Floats | None:
        """Return the importance-sampled reward of each conditioned policy, ``[R, L]``.

        V_l = (1/N) Σ_i r_i π(a_i | c_i, l) / q_i over the N observations so far, with q_i the
        logged probability of action a_i; NaN if q_i is missing for some reward other than 0. None,
        the default, means that the estimator does not keep what V_l needs; the optimized strategy
        then refuses it.
        """
        return None

    def observation_weights(self) -> Floats | None:
        """Return how many observations π(· | c, l) is worth, smoothing included: ``[R, n, L]``.

        None, the default, means unknown; the tracking strategy then refuses the estimator.
        """
        return None

    def observation_weights_by_slot(self) -> list[Floats | None]:
        """Return the observation weights of each slot's choices: a list of ``[R, n, L]``."""
        return [self.observation_weights()] * self.space.slots


def sums_by_slot(joint: Floats, sizes: tuple[int, ...]) -> list[Floats]:
    """Sum over all slots but one, for each slot: ``[..., M] -> [..., choices]``.

    >>> import numpy as np
    >>> sums_by_slot(np.arange(6.0), (2, 3))
    [array([ 3., 12.]), array([3., 5., 7.])]
    """
    cube = joint.reshape(*joint.shape[:-1], *sizes)
    slots = range(-len(sizes), 0)
    return [cube.sum(axis=tuple(set(slots) - {slot})) for slot in slots]


class TabularBelief(Belief):
    """The probabilities of all joint actions, ``listed [R, n, L, M]``, in n contexts.

    They are ``[R, 1, L, M]`` if all contexts share them. The other arguments are what the methods
    of `Belief` return. ``listed``, ``values`` and the observation ``weights`` may be functions.
    """

    def __init__(
        self,
        space: Space,
        levels: Floats,
        level_prior: Floats,
        listed: Floats | Callable[[], Floats],
        values: Floats | Callable[[], Floats | None] | None = None,
        weights: Floats | Callable[[], Floats | None] | None = None,
    ) -> None:
        if np.shape(levels) != (level_prior.shape[0], level_prior.shape[-1]):
            raise InputError(
                f"levels has shape {np.shape(levels)} and level_prior {level_prior.shape}, but "
                "they must be [R, L] and [R, n, L]: R replicas, n contexts, L levels"
            )
        self._space, self._levels, self._level_prior = space, levels, level_prior
        self._listed, self._values, self._weights = listed, values, weights

    @property
    def space(self) -> Space:
        return self._space

    def levels(self) -> Floats:
        return self._levels

    def level_prior(self) -> Floats:
        return self._level_prior

    def values(self) -> Floats | None:
        return self._values() if callable(self._values) else self._values

    def observation_weights(self) -> Floats | None:
        weights = self._weights() if callable(self._weights) else self._weights
        return None if weights is None else self._in_every_row(weights)

    def prob_of_all(self) -> Floats:
        return self._in_every_row(self._table)

    def prob(self, action: Actions) -> Floats:
        listed, index = self._in_every_row(self._table), self.space.index(action)
        wanted = np.broadcast_to(index, (*listed.shape[:2], index.shape[-1]))[:, :, None]
        return np.take_along_axis(listed, wanted, axis=-1)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Actions:
        replicas, rows, _ = self._level_prior.shape
        listed = self._table[:, :, level]
        # Contexts that share the probabilities share one row, from which all actions are drawn.
        shared = listed.shape[1] < rows
        table = listed if shared else listed.reshape(replicas * rows, 1, listed.shape[-1])
        index = draw(table, rows * count if shared else count, rng)
        return self.space.action(index.reshape(replicas, rows, count))

    def rows(self, row: Integers) -> Belief:
        prior = np.take_along_axis(self._level_prior, row[..., None], axis=1)
        listed = self._table
        if listed.shape[1] == self._level_prior.shape[1]:
            listed = np.take_along_axis(listed, row[..., None, None], axis=1)
        return TabularBelief(self.space, self._levels, prior, listed, self._values)

    @cached_property
    def _table(self) -> Floats:
        listed = self._listed() if callable(self._listed) else self._listed
        replicas, rows, levels = self._level_prior.shape
        shapes = [(replicas, count, levels, self._space.size) for count in (rows, 1)]
        if np.shape(listed) not in shapes:
            raise InputError(
                f"listed has shape {np.shape(listed)}, but it must have shape [R, n, L, M] = "
                f"{shapes[0]}: R replicas, n contexts, L levels, M joint actions"
            )
        return listed

    def _in_every_row(self, values: Floats) -> Floats:
        """Repeat what all contexts share: ``[R, 1 or n, ...] -> [R, n, ...]``."""
        rows = self._level_prior.shape[1]
        if values.shape[1] == rows:
            return values
        return np.broadcast_to(values, (len(values), rows, *values.shape[2:]))


Params = TypeVar("Params")


class Estimator(Checked, ABC, Generic[Params]):
    """Learns p(action | context, reward level) by supervised learning, in pure functions."""

    @abstractmethod
    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Params:
        """Return the parameters before any feedback, for ``replicas`` independent runs."""

    @abstractmethod
    def fit(self, params: Params, feedback: Feedback, rng: np.random.Generator) -> Params:
        """Return the parameters after more feedback, which holds only the new rows."""

    @abstractmethod
    def belief(self, params: Params, context: Floats) -> Belief:
        """Return the belief in these contexts, ``context [R, n, D]``."""

    @property
    def traits(self) -> PolicyTraits:
        """What callers need to know about the estimator, see `PolicyTraits`."""
        return PolicyTraits()
