"""Conditioned probabilities by counting."""

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import instance_of, non_negative, positive
from submax.core.conditioning import Estimator, TabularBelief, normalized, sums_by_slot
from submax.core.numerics import decreasing_root, tally
from submax.core.policy import PolicyTraits
from submax.core.problem import Feedback, Problem
from submax.core.rewards import RewardEncoding
from submax.core.serialization import serializable
from submax.models.memory import Buffer, Memory

SWEEPS = 200
"""At most this many rounds over the levels, if more than one constant is fitted."""
CLOSE = 1e-3
"""A search for one constant ends when a step changes its logarithm by less than this."""
SETTLED = 1e-6
"""Rounds end when no logarithm of a constant changes by more than this."""
NEARBY = 1e-4
"""Step of the finite difference that gives the second derivative of the likelihood."""
FURTHEST = 12.0
"""Bound of the absolute value of the logarithm of a constant."""
WIDTH = 3.0
"""Standard deviation of the normal prior of the logarithm, whose mean is 0."""


def fitted_smoothing(counts: Floats, start: Floats | None = None) -> Floats:
    """Return the smoothing constant c_l of every level: ``[R, L, A] -> [R, L]``.

    Adding c_l to the counts of level l amounts to a Dirichlet prior with parameters c for the level
    probabilities of an arm; c maximizes the likelihood of the counts of all arms (empirical Bayes).
    The constant of the level that is rarest, on average over arms, is not fitted but 1, as in
    add-one smoothing. With two levels and rare rewards this is a Beta(1, β) prior of an arm's value
    with a fitted β. A weak normal prior of the logarithms keeps the constants finite if the counts
    say little.

    The likelihood does not depend on how arms were chosen, so good arms may have been pulled more.
    The search begins at ``start [R, L]``, for example the constants of the previous fit.

    >>> rng = np.random.default_rng(0)
    >>> rewards = rng.binomial(50, rng.beta(1, 9, size=(1, 2000)))
    >>> fitted_smoothing(np.stack([50.0 - rewards, rewards], axis=1)).round().tolist()
    [[9.0, 1.0]]

    Reference: Minka (2000), on fitting a Dirichlet-multinomial distribution.
    """
    levels = counts.shape[1]
    pulls = counts.sum(axis=1)
    share = (counts / np.where(pulls > 0, pulls, 1.0)[:, None]).sum(axis=-1)
    # Among equally rare levels the last is the rarest; only levels that were observed compete.
    few = np.count_nonzero(share, axis=-1, keepdims=True) < 2
    rare = np.where((share > 0) | few, share, np.inf)
    rarest = levels - 1 - rare[:, ::-1].argmin(axis=-1)
    free = np.arange(levels) != rarest[:, None]
    if start is None:
        # Start from the shares of the levels, with half an arm added to avoid extremes.
        start = (share + 0.5) / (share.min(axis=-1, keepdims=True) + 0.5)
    smoothing = np.where(free, np.clip(start, np.exp(-FURTHEST), np.exp(FURTHEST)), 1.0)
    if levels == 2:
        # Only one of two constants is free.
        alone = counts[np.arange(len(counts)), 1 - rarest, None]
        fitted = _scaled(alone, pulls, smoothing[free][:, None], np.ones((len(free), 1), bool), 1.0)
        return np.where(free, fitted, 1.0)
    for _ in range(SWEEPS):
        before = smoothing
        for level in range(levels):
            smoothing = _scaled(counts, pulls, smoothing, free & (np.arange(levels) == level), 0.0)
        # If all constants have to grow, one at a time is slow: scale them together as well.
        smoothing = _scaled(counts, pulls, smoothing, free, 0.0)
        # A replica stops by itself, so its result does not depend on other replicas.
        settled = np.abs(np.log(smoothing / before)).max(axis=-1, keepdims=True) < SETTLED
        smoothing = np.where(settled, before, smoothing)
        if settled.all():
            break
    return smoothing


def _scaled(
    counts: Floats, pulls: Floats, smoothing: Floats, group: Booleans, rest: float
) -> Floats:
    """Multiply a ``group [R, L]`` of constants by the likeliest factor; ``rest`` is one more."""
    digamma = scipy.special.digamma
    logarithm = np.log(smoothing)
    lowest = -FURTHEST - np.where(group, logarithm, FURTHEST).min(axis=-1)
    highest = FURTHEST - np.where(group, logarithm, -FURTHEST).max(axis=-1)
    arms = counts.shape[-1]

    def slopes(place: Floats) -> Floats:
        """Return the derivative of the log-posterior by the logarithm of the factor."""
        constant = np.where(group, smoothing * np.exp(place)[..., None], smoothing)
        total = constant.sum(axis=-1) + rest
        of_all = digamma(pulls + total[..., None]).sum(axis=-1) - arms * digamma(total)
        of_level = digamma(counts + constant[..., None]).sum(axis=-1) - arms * digamma(constant)
        slope = constant * (of_level - of_all[..., None]) - np.log(constant) / WIDTH**2
        return np.where(group, slope, 0.0).sum(axis=-1)

    def slope_and_bend(place: Floats) -> tuple[Floats, Floats]:
        here, nearby = slopes(np.array([place, place + NEARBY]))
        return here, (nearby - here) / NEARBY

    place = decreasing_root(slope_and_bend, np.zeros(len(counts)), lowest, highest, CLOSE)
    return np.where(group, smoothing * np.exp(place)[:, None], smoothing)


RATES = np.array([0.0, 1e-6, 1e-5, 1e-4, 1e-3])
"""The rates q of forgetting; chosen on tuning seeds, see docs/research."""
FIRST_WEIGHTS = np.array([0.9, 0.025, 0.025, 0.025, 0.025])
"""Weights of the rates before the first reward: most worlds are constant."""
SWITCH_RATE = 1e-6
"""Share of the weights that is dealt out anew with every row, in proportion to the first ones."""
TOGETHER = 64
"""Rows that are predicted and forgotten in one step; longer feedback is learned in such parts."""


class MemoryRows(NamedTuple):
    """New rows, ``[R, n]``: the index of the reward level, the arm, the weight, and r / q."""

    level: Integers
    arm: Integers
    weight: Floats
    importance: Floats

    def parts(self) -> list[Self]:
        """Return the rows of positive weight in parts of at most ``TOGETHER`` rows."""
        columns, there = list(self), self.weight > 0
        if not there.all():
            # Absent rows go to the end, so they do not change which rows are learned together.
            order = np.argsort(~there, axis=1, kind="stable")[:, : there.sum(axis=1).max()]
            there = np.take_along_axis(there, order, axis=1)
            columns = [np.where(there, np.take_along_axis(one, order, axis=1), 0) for one in self]
        parts = (slice(first, first + TOGETHER) for first in range(0, there.shape[1], TOGETHER))
        return [type(self)._make(column[:, part] for column in columns) for part in parts]


@serializable("memory-counts")
class MemoryCounts(NamedTuple):
    """What each of M rates remembers, and the ``weights [R, M]`` of the rates.

    ``sums [R, M, L + 1, A]`` are the counts of each level and arm, and below them the sums of r / q
    of each arm.
    """

    sums: Floats
    weights: Floats

    @classmethod
    def empty(cls, replicas: int, levels: int, arms: int) -> Self:
        sums = np.zeros((replicas, len(RATES), levels + 1, arms))
        return cls(sums, np.tile(FIRST_WEIGHTS, (replicas, 1)))

    def after(self, rows: MemoryRows, smoothing: Floats) -> Self:
        """Return the counts after more rows, predicted with the constants ``smoothing [R, L]``."""
        replicas, _, width, arms = self.sums.shape
        sums, weights = self
        for part in rows.parts():
            new = np.count_nonzero(part.weight, axis=1)[:, None]
            pulls = sums[:, :, :-1].sum(axis=2, keepdims=True)
            sums = sums / (1 + (new * RATES)[:, :, None, None] * pulls)
            likelihood = _log_likelihood(sums[:, :, :-1], part, smoothing)
            counts = tally(part.level * arms + part.arm, part.weight, (width - 1) * arms)
            sums[:, :, :-1] += counts.reshape(replicas, 1, width - 1, arms)
            sums[:, :, -1] += tally(part.arm, part.importance, arms)[:, None]
            changed = weights * np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
            changed /= changed.sum(axis=1, keepdims=True)
            kept = (1 - SWITCH_RATE) ** new
            changed = kept * changed + (1 - kept) * FIRST_WEIGHTS
            weights = np.where(new > 0, changed, weights)
        return type(self)(sums, weights)

    def mixed(self) -> tuple[Floats, Floats]:
        """Return the weighted means of counts ``[R, L, A]``, and of sums of r / q ``[R, A]``."""
        replicas, rates, rows, arms = self.sums.shape
        means = self.weights[:, None] @ self.sums.reshape(replicas, rates, -1)
        means = means.reshape(replicas, rows, arms)
        return means[:, :-1], means[:, -1]


def _log_likelihood(counts: Floats, rows: MemoryRows, smoothing: Floats) -> Floats:
    """Return the Dirichlet-multinomial log-likelihood for counts of each rate, ``[R, M]``."""
    level, arm, weight, _ = rows
    replica = np.arange(len(arm))[:, None]
    of_level = counts.transpose(0, 2, 3, 1)[replica, level, arm]
    of_arm = counts.sum(axis=2).swapaxes(1, 2)[replica, arm]
    hits = of_level + np.take_along_axis(smoothing, level, axis=1)[..., None]
    pulls = of_arm + smoothing.sum(axis=1)[:, None, None]
    if arm.shape[1] > 1:
        before = np.tril(arm[:, :, None] == arm[:, None], -1) * weight[:, None]
        pulls += before.sum(axis=2)[..., None]
        hits += (before * (level[:, :, None] == level[:, None])).sum(axis=2)[..., None]
    return (weight[:, None] @ np.log(hits / pulls))[:, 0]


INSTEAD = "take one with the CVAE, such as rcp-cvae-submax or, for slots, rcp-cvae-submax-by-slot"


@serializable("counting-params")
class CountingParams(NamedTuple):
    """``counts [R, L, A]`` of rows by level and joint action; ``importance [R, A]`` sums r / q.

    ``history`` holds the rows if they have to be counted again, because the levels move with the
    rewards or because old rows are forgotten. ``smoothing [R, L]`` are the constants, fitted or
    not. ``memories`` are the counts that forget at several rates, if the memory is fitted;
    ``counts`` and ``importance`` are then their weighted means.
    """

    problem: Problem
    counts: Floats
    importance: Floats
    reward_encoding: RewardEncoding
    history: Buffer | None
    smoothing: Floats
    memories: MemoryCounts | None = None


@dataclass(frozen=True)
class Counting(Estimator[CountingParams]):
    """π(a | r) ∝ n_{a,r} + c, with n the counts and c the ``smoothing`` constant.

    The context is not used. A reward counts at the nearest level. With c = 0 a level without data
    is uniform. With "fitted" every level has its own constant, fitted to the counts after each
    update, see ``fitted_smoothing``. ``memory`` says which rows are kept. With "fitted" old rows
    count less if this predicts the rewards better, see ``fitted_memory``; levels that move with the
    rewards are then counted from all rows.

    *Departs from the paper:* the paper does not say how to treat an arm that was never rewarded.
    With c = 0 such an arm forces λ_max = 1, and the optimized policy equals the optimistic one. The
    default is the constant with the least regret over the paper's 27 configurations, see
    docs/results.
    """

    smoothing: float | Literal["fitted"] = 0.1
    memory: Memory | Literal["fitted"] = field(default_factory=Memory)

    def __post_init__(self) -> None:
        if self.memory != "fitted":
            instance_of("memory", self.memory, Memory, "Memory() or 'fitted'")
        if self.smoothing != "fitted":
            # A fitted memory predicts rewards, and nothing may be impossible.
            (positive if self.memory == "fitted" else non_negative)("smoothing", self.smoothing)

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(
            uses_context=False, forgets=self.memory == "fitted" or self.memory.forgets
        )

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> CountingParams:
        problem.space.check_listable("the counting estimator", INSTEAD)
        size = problem.space.size
        nothing = np.zeros((replicas, 0))
        fitted = self.memory == "fitted" and not problem.scale.moves
        again = problem.scale.moves or self._rows_kept.forgets
        return CountingParams(
            problem,
            np.zeros((replicas, problem.scale.levels, size)),
            np.zeros((replicas, size)),
            problem.scale.reward_encoding(nothing, nothing),
            Buffer.empty(replace(problem, context_width=0), replicas) if again else None,
            np.full(
                (replicas, problem.scale.levels),
                1.0 if self.smoothing == "fitted" else float(self.smoothing),
            ),
            MemoryCounts.empty(replicas, problem.scale.levels, size) if fitted else None,
        )

    def fit(
        self, params: CountingParams, feedback: Feedback, rng: np.random.Generator
    ) -> CountingParams:
        problem, encoding, history = params.problem, params.reward_encoding, params.history
        memories = params.memories
        feedback.check(problem)
        if memories is not None:
            level, arm = encoding.nearest(feedback.reward), problem.space.index(feedback.action)
            rows = MemoryRows(level, arm, feedback.weight, _importance(feedback))
            memories = memories.after(rows, params.smoothing)
            counts, importance = memories.mixed()
        elif history is None:
            counts, importance = counted(problem, encoding, feedback)
            counts, importance = params.counts + counts, params.importance + importance
        else:
            context = np.zeros((*feedback.reward.shape, 0))
            history = history.add(feedback._replace(context=context), self._rows_kept, rng)
            encoding = problem.scale.reward_encoding(history.reward, history.weight)
            counts, importance = counted(problem, encoding, history)
        smoothing = params.smoothing
        if self.smoothing == "fitted":
            # A replica without new counts keeps its constants.
            same = np.all(counts == params.counts, axis=(1, 2))[:, None]
            smoothing = np.where(same, smoothing, fitted_smoothing(counts, smoothing))
        return CountingParams(problem, counts, importance, encoding, history, smoothing, memories)

    def belief(self, params: CountingParams, context: Floats) -> "CountingBelief":
        return CountingBelief(self, params, context.shape[1])

    @property
    def _rows_kept(self) -> Memory:
        return Memory() if self.memory == "fitted" else self.memory


class CountingBelief(TabularBelief):
    """The smoothed counts of ``params``; they are the same in each of ``rows`` contexts."""

    def __init__(self, estimator: Counting, params: CountingParams, rows: int) -> None:
        mass = params.counts + params.smoothing[..., None]
        prior = normalized(params.counts.sum(axis=-1))[:, None]
        super().__init__(
            params.problem.space,
            params.reward_encoding.levels,
            np.broadcast_to(prior, (len(prior), rows, prior.shape[2])),
            lambda: normalized(mass)[:, None],
            lambda: _values(mass, params),
            lambda: mass.sum(axis=-1)[:, None],
        )
        self._estimator, self._params = estimator, params

    def prob_of_choices(self) -> list[Floats]:
        return [self._in_every_row(normalized(mass)[:, None]) for mass in self._by_slot()]

    def observation_weights_by_slot(self) -> list[Floats | None]:
        return [self._in_every_row(mass.sum(axis=-1)[:, None]) for mass in self._by_slot()]

    def _by_slot(self) -> list[Floats]:
        """Return counts of choices plus their own constant, not that of joint actions."""
        sizes, smoothing = self._params.problem.space.choices, self._params.smoothing
        counts = sums_by_slot(self._params.counts, sizes)
        if self._estimator.smoothing == "fitted" and len(sizes) > 1:
            return [slot + fitted_smoothing(slot)[..., None] for slot in counts]
        return [slot + smoothing[..., None] for slot in counts]


def _values(mass: Floats, params: CountingParams) -> Floats:
    """Return V_l as the sum over actions Σ_a π(a | l) · (1/N) Σ_{i: a_i = a} r_i / q_i."""
    total = params.counts.sum(axis=(-1, -2))
    earned = np.einsum("rla,ra->rl", normalized(mass), params.importance)
    return earned / np.where(total > 0, total, 1.0)[:, None]


def counted(
    problem: Problem, encoding: RewardEncoding, feedback: Feedback | Buffer
) -> tuple[Floats, Floats]:
    """Return counts by level and joint action, ``[R, L, A]``, and sums of r / q, ``[R, A]``."""
    replicas, levels = encoding.levels.shape
    size = problem.space.size
    arm = problem.space.index(feedback.action)
    joint = encoding.nearest(feedback.reward) * size + arm
    counts = tally(joint, feedback.weight, levels * size).reshape(replicas, levels, size)
    return counts, tally(arm, _importance(feedback), size)


def _importance(feedback: Feedback | Buffer) -> Floats:
    """Return w r / q of every row, ``[R, n]``; a row without a reward does not need q."""
    paid = (feedback.weight > 0) & (feedback.reward != 0)
    log_prob = np.nan if feedback.log_prob is None else feedback.log_prob
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(paid, feedback.weight * feedback.reward * np.exp(-log_prob), 0.0)
