"""Conditioned probabilities by counting."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import non_negative
from submax.core.conditioning.estimator import Estimator, sums_by_slot
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
from submax.estimators.fitted_smoothing import fitted_smoothing

INSTEAD = "take one with the CVAE, such as rcp-cvae-submax or, for slots, rcp-cvae-submax-by-slot"


@stored("counting-params")
class CountingParams(NamedTuple):
    """``counts [R, L, A]`` of level and joint action; ``importance [R, A]`` sums r / q.

    ``history`` holds the feedback where it must be counted again: levels move, or old rows fade.
    ``smoothing [R, L]`` is what was fitted to the counts, None where it is given.
    """

    problem: Problem
    counts: Floats
    importance: Floats
    reward_encoding: RewardEncoding
    history: Buffer | None
    smoothing: Floats | None = None


@dataclass(frozen=True)
class Counting(Estimator[CountingParams]):
    """π(a | r) ∝ n_{a,r} + c, with n the counts and c the ``smoothing`` constant.

    The context is not used. A reward counts at the nearest level. With c = 0 a level without data
    is uniform; "fitted" gives every level a constant of its own, fitted to the counts after each
    update: see ``fitted_smoothing``. ``memory`` says what is kept of the past.

    *Departs from the paper:* it counts without saying how an arm that was never seen with a
    reward is treated. With c = 0 any played arm without reward forces λ_max = 1, and the
    optimized policy is the optimistic one; the default adds one.
    """

    smoothing: float | Literal["fitted"] = 1.0
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        if self.smoothing != "fitted":
            non_negative("smoothing", self.smoothing)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False, forgets=self.memory.forgets)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> CountingParams:
        """No counts."""
        problem.space.check_listable("the counting estimator", INSTEAD)
        size = problem.space.size
        nothing = np.zeros((replicas, 0))
        again = problem.scale.moves or self.memory.forgets
        return CountingParams(
            problem,
            np.zeros((replicas, problem.scale.levels, size)),
            np.zeros((replicas, size)),
            problem.scale.reward_encoding(nothing, nothing),
            Buffer.empty(_without_context(problem), replicas) if again else None,
            np.ones((replicas, problem.scale.levels)) if self.smoothing == "fitted" else None,
        )

    def fit(
        self, params: CountingParams, feedback: Feedback, rng: np.random.Generator
    ) -> CountingParams:
        """Add the new counts to the old, or count all that is kept once more."""
        problem, history = params.problem, params.history
        feedback.check(problem)
        if history is None:
            counts, importance = _counted(problem, params.reward_encoding, feedback)
            counts, importance = params.counts + counts, params.importance + importance
            smoothing = self._fitted(counts, params)
            return params._replace(counts=counts, importance=importance, smoothing=smoothing)
        context = np.zeros((*feedback.reward.shape, 0))
        history = history.add(feedback._replace(context=context), self.memory, rng)
        encoding = problem.scale.reward_encoding(history.reward, history.weight)
        counts, importance = _counted(problem, encoding, _as_feedback(history))
        smoothing = self._fitted(counts, params)
        return CountingParams(problem, counts, importance, encoding, history, smoothing)

    def log_prob(self, params: CountingParams, context: Floats, action: Integers) -> Floats:
        """Logarithm of the smoothed counts."""
        with np.errstate(divide="ignore"):
            return np.log(self.prob(params, context, action))

    def prob(self, params: CountingParams, context: Floats, action: Integers) -> Floats:
        """Look the actions up in the smoothed counts."""
        table = self._table(params)
        index = params.problem.space.index(action)
        if index.shape[0] == 1:
            found = table.take(index[0], axis=2)
        else:
            replica = np.arange(len(table))[:, None, None, None]
            level = np.arange(table.shape[1])[None, :, None, None]
            found = table[replica, level, index[:, None]]
        shape = (len(table), context.shape[1], table.shape[1], index.shape[-1])
        return np.broadcast_to(found.swapaxes(1, 2), shape)

    def prob_of_all(self, params: CountingParams, context: Floats, space: Space) -> Floats:
        """The smoothed counts as they are."""
        return _for_rows(self._table(params), context)

    def prob_of_choices(
        self, params: CountingParams, context: Floats, space: Space
    ) -> list[Floats]:
        """Counted by choice: π(a_s | r) ∝ n + c with the counts of the choice alone.

        Summed over joint actions, c would count once for each of them.
        """
        return [_for_rows(normalized(mass), context) for mass in self._by_slot(params)]

    def evidence_of_choices(
        self, params: CountingParams, context: Floats, space: Space
    ) -> list[Floats]:
        """The smoothed counts of each level, by choice."""
        return [_for_rows(mass.sum(axis=-1), context) for mass in self._by_slot(params)]

    def sample(
        self,
        params: CountingParams,
        context: Floats,
        level: int,
        count: int,
        rng: np.random.Generator,
    ) -> Integers:
        """Draw from the smoothed counts of one level."""
        replicas, rows = context.shape[:2]
        index = draw(self._table(params)[:, level, None, :], rows * count, rng)
        return params.problem.space.action(index.reshape(replicas, rows, count))

    def levels(self, params: CountingParams) -> Floats:
        """As the scale has them."""
        return params.reward_encoding.levels

    def level_prior(self, params: CountingParams, context: Floats) -> Floats:
        """Share of the observations at each level; equal shares before the first."""
        observed = params.counts.sum(axis=-1)
        prior = normalized(observed)
        return _for_rows(prior, context)

    def values(self, params: CountingParams) -> Floats:
        """Σ_a π(a | l) · (1/N) Σ_{i: a_i = a} r_i / q_i: the sum over arms, not observations."""
        total = params.counts.sum(axis=(-1, -2))
        mass, mass_total = with_total(self._smoothed(params))
        earned = np.einsum("rla,ra->rl", mass, params.importance) / mass_total[..., 0]
        result: Floats = earned / np.where(total > 0, total, 1.0)[:, None]
        return result

    def evidence(self, params: CountingParams, context: Floats) -> Floats:
        """The smoothed counts of each level."""
        return _for_rows(self._smoothed(params).sum(axis=-1), context)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """No smoothing, little, the default, and fitted; and three that forget."""
        for smoothing in (0.0, 0.1, 1.0):
            yield cls(smoothing)
        yield cls("fitted")
        yield cls(memory=Memory(discount=0.9))
        yield cls(memory=Memory(window=10))
        yield cls(memory=Memory(reservoir=5))

    def _table(self, params: CountingParams) -> Floats:
        return normalized(self._smoothed(params))

    def _smoothed(self, params: CountingParams) -> Floats:
        if self.smoothing != "fitted":
            return params.counts + self.smoothing
        assert params.smoothing is not None, "a state of another estimator"
        return params.counts + params.smoothing[..., None]

    def _by_slot(self, params: CountingParams) -> list[Floats]:
        """The smoothed counts of each slot's choices, ``[R, L, choices]``."""
        sizes = params.problem.space.choices
        if len(sizes) == 1:
            return [self._smoothed(params)]
        counts = sums_by_slot(params.counts, sizes)
        if self.smoothing != "fitted":
            return [slot + self.smoothing for slot in counts]
        return [slot + fitted_smoothing(slot)[..., None] for slot in counts]

    def _fitted(self, counts: Floats, before: CountingParams) -> Floats | None:
        """What is fitted to the counts; where they are the same as before, it stays."""
        if before.smoothing is None:
            return None
        same = np.all(counts == before.counts, axis=(1, 2))[:, None]
        return np.where(same, before.smoothing, fitted_smoothing(counts, before.smoothing))


def _for_rows(values: Floats, context: Floats) -> Floats:
    """The same values for every row of context: ``[R, ...] -> [R, n, ...]``."""
    replicas, rows = context.shape[:2]
    if rows == 1:
        return values[:, None]
    return np.broadcast_to(values[:, None], (replicas, rows, *values.shape[1:]))


def _counted(
    problem: Problem, encoding: RewardEncoding, feedback: Feedback
) -> tuple[Floats, Floats]:
    """Counts of level and joint action, ``[R, L, A]``, and sums of r / q, ``[R, A]``."""
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
    """Sum of w r / q by arm, ``[R, size]``; most rewards are 0 and need no q."""
    replicas, rows = arm.shape
    weight, reward = feedback.weight.ravel(), feedback.reward.ravel()
    paid = np.flatnonzero((weight > 0) & (reward != 0))
    if feedback.log_prob is None:
        ratio = np.full(len(paid), np.nan)
    else:
        earned = weight.take(paid) * reward.take(paid)
        ratio = earned * np.exp(-feedback.log_prob.ravel().take(paid))
    place = paid // rows * size + arm.ravel().take(paid)
    sums = np.bincount(place, ratio, minlength=replicas * size)
    return sums.astype(np.float64, copy=False).reshape(replicas, size)
