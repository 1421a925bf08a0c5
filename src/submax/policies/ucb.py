"""Policies that take the arm with the highest index."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import Count, NonNegative, Positive
from submax.core.numerics import highest, tally
from submax.core.policy import PolicyTraits, TabularPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.policies.arm_statistics import ArmStatistics, kept_columns

MOST_STEPS = 60
"""Newton's method takes fewer steps than this; the number only bounds the loop."""
CLOSE = 1e-12
"""The search ends when every divergence is this close to its level, relative to 1 + level."""
LARGEST = 1 - 1e-15
"""The largest bound: one step of rounding below 1."""


def divergence(mean: Floats, other: Floats) -> Floats:
    """Return kl(p, q) = p ln(p / q) + (1 − p) ln((1 − p) / (1 − q)), elementwise."""
    rel_entr = scipy.special.rel_entr
    return rel_entr(mean, other) + rel_entr(1 - mean, 1 - other)


def upper_bound(mean: Floats, level: Floats) -> Floats:
    """Return the largest q ≤ 1 with kl(p, q) ≤ level, elementwise.

    Two upper bounds of q are known in closed form: p + √(level / 2), from Pinsker's inequality, and
    1 − (1 − p) exp(−(level − p ln p) / (1 − p)), from q ≤ 1. Since kl(p, ·) is convex above p,
    Newton's method from an upper bound approaches the solution from above and never passes it.

    >>> upper_bound(np.array([0.0, 0.5]), np.array([np.log(2.0), 0.0])).round(6).tolist()
    [0.5, 0.5]
    """
    rest = np.maximum(1 - mean, 1e-300)
    near_one = 1 - rest * np.exp(-(level - scipy.special.xlogy(mean, mean)) / rest)
    bound = np.clip(np.minimum(mean + np.sqrt(level / 2), near_one), mean, LARGEST)
    for _ in range(MOST_STEPS):
        excess = divergence(mean, bound) - level
        if np.all(excess <= CLOSE * (1 + level)):
            break
        slope = (bound - mean) / np.maximum(bound * (1 - bound), 1e-300)
        step = np.where(excess > 0, excess / np.maximum(slope, 1e-300), 0.0)
        bound = np.maximum(bound - step, mean)
    return np.where(mean >= LARGEST, mean, bound)


@serializable("index-state")
class IndexState(NamedTuple):
    """The observed rewards, and the ``pending [R, A]`` pulls without a reward yet.

    ``order [R, A]`` are random numbers, drawn at every update with new rows. If pending pulls
    count, the arm with the larger number wins a tie.
    """

    problem: Problem
    arms: ArmStatistics
    pending: Floats
    order: Floats

    def restricted(self, choices: Choices) -> Self:
        arms = self.arms.restricted(choices)
        return kept_columns(self, choices, "pending", "order")._replace(arms=arms)


class ArmCounts(NamedTuple):
    """What an index is computed from; each array is ``[R, A]``, or ``[R, 1]`` for one arm each.

    ``successes`` are the sums of rewards scaled to 0 … 1, ``received`` the pulls with an observed
    reward, and ``pulls`` those that count, perhaps with pending ones. ``total [R, 1]`` are the
    pulls of all arms that count, ``best [R, 1]`` is their highest mean, and ``arms`` their number.
    """

    successes: Floats
    received: Floats
    pulls: Floats
    total: Floats
    best: Floats
    arms: int

    @property
    def means(self) -> Floats:
        """The mean reward between 0 and 1; 0 for an arm without rewards."""
        return self.successes / np.where(self.received > 0, self.received, 1.0)


class IndexPolicy(TabularPolicy[IndexState]):
    """Take the arm with the highest index; ties are broken at random for every decision.

    Under delay only observed rewards count. All decisions of a batch then take the same
    arm, unless arms tie. If ``pending`` is set, pulls without a reward yet count as pulls
    that leave the mean as it is, which spreads the decisions of a batch over several arms. The
    total number of pulls then includes the decisions of the present batch.
    """

    pending: bool

    @abstractmethod
    def index(self, counts: ArmCounts) -> Floats:
        """Return the index of every arm, elementwise; +∞ for an arm that must be tried first."""

    def successes(self, arms: ArmStatistics) -> Floats:
        """Return the sum of the rewards of every arm, scaled to 0 … 1 for each pull."""
        return arms.successes(f"the {type(self).__name__} policy")

    traits = PolicyTraits(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> IndexState:
        arms = ArmStatistics.empty(problem, replicas)
        self.successes(arms)
        return IndexState(problem, arms, np.zeros_like(arms.pulls), rng.random(arms.pulls.shape))

    def act(self, state: IndexState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        if not self.pending:
            return super().act(state, context, rng)
        choices = self._spread(state, context.shape[1])
        return ChosenActions(state.problem.space.action(choices), np.zeros(choices.shape))

    def probabilities(self, state: IndexState, context: Floats) -> Floats:
        if self.pending:
            return np.eye(state.problem.space.size)[self._spread(state, context.shape[1])]
        return highest(self.index(self._counts(state.arms, state.pending, 1)))[:, None]

    def record(
        self, state: IndexState, action: Actions | None = None, *, upcoming: int | None = None
    ) -> IndexState:
        if not self.pending or action is None:
            return state
        chosen = state.problem.space.index(action)
        added = tally(chosen, np.ones(chosen.shape), state.pending.shape[-1])
        return state._replace(pending=state.pending + added)

    def update(self, state: IndexState, feedback: Feedback, rng: np.random.Generator) -> IndexState:
        arms, pending, there = state.arms.add(feedback), state.pending, feedback.weight > 0
        if self.pending:
            index = state.problem.space.index(feedback.action)
            back = tally(index, there.astype(np.float64), pending.shape[-1])
            pending = np.maximum(pending - back, 0.0)
        new = there.any(axis=1, keepdims=True)
        order = np.where(new, rng.random(pending.shape), state.order)
        return IndexState(state.problem, arms, pending, order)

    def _counts(self, arms: ArmStatistics, pending: Floats, decisions: int) -> ArmCounts:
        successes, pulls = self.successes(arms), arms.pulls + pending
        total = pulls.sum(axis=-1, keepdims=True) + decisions - 1
        counts = ArmCounts(successes, arms.pulls, pulls, total, total, pulls.shape[-1])
        return counts._replace(best=counts.means.max(axis=-1, keepdims=True))

    def _spread(self, state: IndexState, decisions: int) -> Integers:
        """Return the arms of a batch if pending pulls count: ``[R, decisions]``.

        After each decision only the index of the arm that was taken is computed again.
        """
        counts = self._counts(state.arms, state.pending, decisions)
        index = self.index(counts)
        pulls, replica = counts.pulls.copy(), np.arange(len(index))
        choices = np.empty((len(index), decisions), dtype=np.int64)
        for column in range(decisions):
            best = index == index.max(axis=-1, keepdims=True)
            arm = np.where(best, state.order, -1.0).argmax(axis=-1)
            choices[:, column], taken = arm, (replica, arm)
            pulls[taken] += 1
            parts = (counts.successes, counts.received, pulls)
            of_arm = (part[taken][:, None] for part in parts)
            index[taken] = self.index(ArmCounts._make([*of_arm, *counts[3:]]))[:, 0]
        return choices


@dataclass(frozen=True)
class UCB1(IndexPolicy):
    """Take the arm with the highest mean + √(c ln t / n).

    n is the arm's number of pulls, t that of all arms, and c is ``exploration``. The mean is
    divided by the span of the rewards if their bounds are known. An arm that was never pulled is
    taken first. If ``pending``, pulls without a reward yet count, too, see `IndexPolicy`.

    Reference: Auer et al. (2002).
    """

    pending: bool = False
    exploration: NonNegative = 2.0

    def successes(self, arms: ArmStatistics) -> Floats:
        bounds = arms.problem.scale.bounds
        return arms.rewards if bounds is None else arms.rewards / (bounds[1] - bounds[0])

    def index(self, counts: ArmCounts) -> Floats:
        pulls = np.maximum(counts.pulls, 1.0)
        width = np.sqrt(self.exploration * np.log(np.maximum(counts.total, 1.0)) / pulls)
        return np.where(counts.pulls > 0, counts.means + width, np.inf)


@dataclass(frozen=True)
class KLUCB(IndexPolicy):
    """Take the arm with the highest q for which n kl(mean, q) ≤ ln t + c ln ln t.

    n is the arm's number of pulls, t that of all arms, kl the divergence between Bernoulli
    distributions, and c is ``exploration``; the authors recommend c = 0. An arm that was never
    pulled is taken first. If ``pending``, pulls without a reward yet count, too, see
    `IndexPolicy`.

    Reference: Garivier and Cappé (2011).
    """

    pending: bool = False
    exploration: NonNegative = 0.0

    def index(self, counts: ArmCounts) -> Floats:
        logarithm = np.log(np.maximum(counts.total, 1.0))
        level = logarithm + self.exploration * np.log(np.maximum(logarithm, 1.0))
        bound = upper_bound(counts.means, level / np.maximum(counts.pulls, 1.0))
        return np.where(counts.pulls > 0, bound, np.inf)


@dataclass(frozen=True)
class MOSS(IndexPolicy):
    """Take the highest mean + √(max(ln(T / (K n)), 0) / n); T is horizon, or the pulls so far.

    n is the arm's number of pulls, K the number of arms, and T the ``horizon``. If this is None, T
    is the number of all pulls so far, as in the anytime variant. An arm that was never pulled is
    taken first. If ``pending``, pulls without a reward yet count, too, see `IndexPolicy`.

    Reference: Audibert and Bubeck (2009); Degenne and Perchet (2016) on the anytime variant.
    """

    pending: bool = False
    horizon: Count | None = None

    def index(self, counts: ArmCounts) -> Floats:
        horizon = counts.total if self.horizon is None else float(self.horizon)
        pulls = np.maximum(counts.pulls, 1.0)
        width = np.log(np.maximum(horizon / (counts.arms * pulls), 1.0)) / pulls
        return np.where(counts.pulls > 0, counts.means + np.sqrt(width), np.inf)


@dataclass(frozen=True)
class IMED(IndexPolicy):
    """Take the arm with the lowest n kl(mean, best mean) + ln n.

    n is the arm's number of pulls and kl the divergence between Bernoulli distributions. An arm
    that was never pulled is taken first. With single decisions the regret reaches the lower bound
    of Lai and Robbins asymptotically (proof in the reference). If ``pending``, pulls whose reward
    has not come back count, too, see `IndexPolicy`.

    Reference: Honda and Takemura (2015).
    """

    pending: bool = False

    def index(self, counts: ArmCounts) -> Floats:
        pulls = np.maximum(counts.pulls, 1.0)
        index = pulls * divergence(counts.means, counts.best) + np.log(pulls)
        return np.where(counts.pulls > 0, -index, np.inf)


@dataclass(frozen=True)
class BayesUCB(IndexPolicy):
    """Take the arm with the highest quantile of the level 1 − 1 / (t + 1) of its posterior.

    The prior of an arm is Beta(α, β), its posterior Beta(α + successes, β + failures), and t is the
    number of pulls of all arms. If ``pending``, pulls without a reward yet count, too,
    see `IndexPolicy`; a pending pull counts as its expected reward.

    Reference: Kaufmann, Cappé and Garivier (2012), with c = 0 as in their experiments.
    """

    alpha: Positive = 1.0
    beta: Positive = 1.0
    pending: bool = False

    def index(self, counts: ArmCounts) -> Floats:
        successes = self.alpha + counts.successes
        failures = self.beta + counts.received - counts.successes
        # A pending pull adds its expected reward, so the mean stays and the spread falls.
        growth = 1 + (counts.pulls - counts.received) / (successes + failures)
        tail = 1 / (np.maximum(counts.total, 0.0) + 1)
        return np.asarray(
            scipy.special.betainccinv(successes * growth, failures * growth, tail), np.float64
        )
