"""Conditioned probabilities by counting."""

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import instance_of, non_negative, positive
from submax.core.conditioning.belief import Belief, sums_by_slot
from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.marginalization import normalized, with_total
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer
from submax.core.memory.memory import Memory
from submax.core.numerics.categorical import draw
from submax.core.numerics.tally import tally
from submax.core.rewards.reward_encoding import RewardEncoding
from submax.core.running.stored import stored
from submax.core.spaces.space import Space
from submax.estimators.fitted_memory import MemoryCounts, MemoryRows
from submax.estimators.fitted_smoothing import fitted_smoothing
from submax.strategies.observation_weights import ObservationWeights

INSTEAD = "take one with the CVAE, such as rcp-cvae-submax or, for slots, rcp-cvae-submax-by-slot"


@stored("counting-params")
class CountingParams(NamedTuple):
    """``counts [R, L, A]`` of rows by level and joint action; ``importance [R, A]`` sums r / q.

    ``history`` holds the rows if they have to be counted again, because the levels move with the
    rewards or because old rows are forgotten. ``smoothing [R, L]`` is the fitted smoothing
    constant, None if the constant is given. ``memories`` are the counts that forget at several
    rates, if the memory is fitted; ``counts`` and ``importance`` are then their weighted means.
    """

    problem: Problem
    counts: Floats
    importance: Floats
    reward_encoding: RewardEncoding
    history: Buffer | None
    smoothing: Floats | None = None
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
    With c = 0 such an arm forces λ_max = 1, and the optimized policy equals the optimistic one; the
    default adds one.
    """

    smoothing: float | Literal["fitted"] = 1.0
    memory: Memory | Literal["fitted"] = field(default_factory=Memory)

    def __post_init__(self) -> None:
        if self.memory != "fitted":
            instance_of("memory", self.memory, Memory, "Memory() or 'fitted'")
        if self.smoothing != "fitted":
            # A fitted memory predicts rewards, and nothing may be impossible.
            (positive if self.memory == "fitted" else non_negative)("smoothing", self.smoothing)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False, forgets=self.memory == "fitted" or self.memory.forgets)

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
            Buffer.empty(_without_context(problem), replicas) if again else None,
            np.ones((replicas, problem.scale.levels)) if self.smoothing == "fitted" else None,
            MemoryCounts.empty(replicas, problem.scale.levels, size) if fitted else None,
        )

    def fit(
        self, params: CountingParams, feedback: Feedback, rng: np.random.Generator
    ) -> CountingParams:
        problem, history = params.problem, params.history
        feedback.check(problem)
        if params.memories is not None:
            rows = _memory_rows(problem, params.reward_encoding, feedback)
            memories = params.memories.after(rows, self._constants(params))
            counts, importance = memories.mixed()
            smoothing = self._fitted(counts, params)
            return params._replace(
                counts=counts, importance=importance, smoothing=smoothing, memories=memories
            )
        if history is None:
            counts, importance = _counted(problem, params.reward_encoding, feedback)
            counts, importance = params.counts + counts, params.importance + importance
            smoothing = self._fitted(counts, params)
            return params._replace(counts=counts, importance=importance, smoothing=smoothing)
        context = np.zeros((*feedback.reward.shape, 0))
        history = history.add(feedback._replace(context=context), self._rows_kept, rng)
        encoding = problem.scale.reward_encoding(history.reward, history.weight)
        counts, importance = _counted(problem, encoding, _as_feedback(history))
        smoothing = self._fitted(counts, params)
        return CountingParams(problem, counts, importance, encoding, history, smoothing)

    def belief(self, params: CountingParams, context: Floats) -> "CountingBelief":
        return CountingBelief(self, params, context.shape[1])

    def smoothed(self, params: CountingParams) -> Floats:
        """Return the counts plus the smoothing constant, ``[R, L, A]``."""
        return params.counts + self._constants(params)[..., None]

    def smoothed_by_slot(self, params: CountingParams) -> list[Floats]:
        """Return the same for the choices of each slot, ``[R, L, choices]``.

        The smoothing constant is added to the counts of a choice, not of the joint actions that
        contain the choice, in whose sum the constant would count many times.
        """
        sizes = params.problem.space.choices
        if len(sizes) == 1:
            return [self.smoothed(params)]
        counts = sums_by_slot(params.counts, sizes)
        if self.smoothing != "fitted":
            return [slot + self.smoothing for slot in counts]
        return [slot + fitted_smoothing(slot)[..., None] for slot in counts]

    @property
    def _rows_kept(self) -> Memory:
        """Which rows are stored, if they are counted again."""
        return Memory() if self.memory == "fitted" else self.memory

    def _constants(self, params: CountingParams) -> Floats:
        """Return the smoothing constants of the levels, ``[R, L]``."""
        if self.smoothing != "fitted":
            return np.full(params.counts.shape[:2], float(self.smoothing))
        assert params.smoothing is not None, "these parameters are of another estimator"
        return params.smoothing

    def _fitted(self, counts: Floats, before: CountingParams) -> Floats | None:
        """Return the fitted constants; a replica without new counts keeps its constants."""
        if before.smoothing is None:
            return None
        same = np.all(counts == before.counts, axis=(1, 2))[:, None]
        return np.where(same, before.smoothing, fitted_smoothing(counts, before.smoothing))


class CountingBelief(Belief, ObservationWeights):
    """The smoothed counts of ``params``; they are the same in each of ``rows`` contexts."""

    def __init__(self, estimator: Counting, params: CountingParams, rows: int) -> None:
        self._estimator = estimator
        self._params = params
        self._rows = rows

    @property
    def space(self) -> Space:
        return self._params.problem.space

    def levels(self) -> Floats:
        return self._params.reward_encoding.levels

    def level_prior(self) -> Floats:
        return self._in_every_row(normalized(self._params.counts.sum(axis=-1)))

    def prob(self, action: Actions) -> Floats:
        table = self._table()
        index = self.space.index(action)
        if index.shape[0] == 1:
            found = table.take(index[0], axis=2)
        else:
            replica = np.arange(len(table))[:, None, None, None]
            level = np.arange(table.shape[1])[None, :, None, None]
            found = table[replica, level, index[:, None]]
        shape = (len(table), self._rows, table.shape[1], index.shape[-1])
        return np.broadcast_to(found.swapaxes(1, 2), shape)

    def prob_of_all(self) -> Floats:
        return self._in_every_row(self._table())

    def prob_of_choices(self) -> list[Floats]:
        by_slot = self._estimator.smoothed_by_slot(self._params)
        return [self._in_every_row(normalized(mass)) for mass in by_slot]

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Actions:
        table = self._table()
        index = draw(table[:, level, None, :], self._rows * count, rng)
        return self.space.action(index.reshape(len(table), self._rows, count))

    def rows(self, row: Integers) -> "CountingBelief":
        return CountingBelief(self._estimator, self._params, row.shape[1])

    def values(self) -> Floats:
        """Return V_l as the sum over actions Σ_a π(a | l) · (1/N) Σ_{i: a_i = a} r_i / q_i."""
        params = self._params
        total = params.counts.sum(axis=(-1, -2))
        mass, mass_total = with_total(self._estimator.smoothed(params))
        earned = np.einsum("rla,ra->rl", mass, params.importance) / mass_total[..., 0]
        result: Floats = earned / np.where(total > 0, total, 1.0)[:, None]
        return result

    def observation_weights(self) -> Floats:
        return self._in_every_row(self._estimator.smoothed(self._params).sum(axis=-1))

    def observation_weights_by_slot(self) -> list[Floats]:
        by_slot = self._estimator.smoothed_by_slot(self._params)
        return [self._in_every_row(mass.sum(axis=-1)) for mass in by_slot]

    def _table(self) -> Floats:
        return normalized(self._estimator.smoothed(self._params))

    def _in_every_row(self, values: Floats) -> Floats:
        """Repeat values for every context: ``[R, ...] -> [R, n, ...]``."""
        if self._rows == 1:
            return values[:, None]
        return np.broadcast_to(values[:, None], (len(values), self._rows, *values.shape[1:]))


def _counted(
    problem: Problem, encoding: RewardEncoding, feedback: Feedback
) -> tuple[Floats, Floats]:
    """Return counts by level and joint action, ``[R, L, A]``, and sums of r / q, ``[R, A]``."""
    replicas, levels = encoding.levels.shape
    size = problem.space.size
    arm = problem.space.index(feedback.action)
    joint = encoding.nearest(feedback.reward) * size + arm
    counts = tally(joint, feedback.weight, levels * size)
    return counts.reshape(replicas, levels, size), _importance(feedback, arm, size)


def _without_context(problem: Problem) -> Problem:
    return replace(problem, context_width=0)


def _as_feedback(history: Buffer) -> Feedback:
    return Feedback(
        history.context.astype(np.float64),
        history.action.astype(np.int64),
        history.reward,
        history.log_prob,
        history.weight,
    )


def _importance(feedback: Feedback, arm: Integers, size: int) -> Floats:
    """Return Σ w r / q of every arm, ``[R, size]``."""
    replicas, rows = arm.shape
    paid, ratio = _ratios(feedback)
    place = paid // rows * size + arm.ravel().take(paid)
    sums = np.bincount(place, ratio, minlength=replicas * size)
    return sums.astype(np.float64, copy=False).reshape(replicas, size)


def _ratios(feedback: Feedback) -> tuple[Integers, Floats]:
    """Return where rows with a reward are, and their w r / q; other rows do not need q."""
    weight, reward = feedback.weight.ravel(), feedback.reward.ravel()
    paid = np.flatnonzero((weight > 0) & (reward != 0))
    if feedback.log_prob is None:
        return paid, np.full(len(paid), np.nan)
    earned = weight.take(paid) * reward.take(paid)
    return paid, earned * np.exp(-feedback.log_prob.ravel().take(paid))


def _memory_rows(problem: Problem, encoding: RewardEncoding, feedback: Feedback) -> MemoryRows:
    paid, ratio = _ratios(feedback)
    importance = np.zeros(feedback.reward.shape)
    importance.ravel()[paid] = ratio
    level, arm = encoding.nearest(feedback.reward), problem.space.index(feedback.action)
    return MemoryRows(level, arm, feedback.weight, importance)
