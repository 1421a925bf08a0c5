"""Problems, contexts and feedback that the suites run on."""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from submax.core.arms import Arms
from submax.core.arrays import Floats, Integers
from submax.core.feedback import Feedback
from submax.core.problem import Problem
from submax.core.slots import Slots

PROBLEMS = (
    Problem(Arms(1)),
    Problem(Arms(3)),
    Problem(Slots((2, 3))),
    Problem(Arms(3), context_width=2),
)
REPLICAS = (1, 4)

Number = TypeVar("Number", bound=np.generic)


def some_contexts(problem: Problem, replicas: int, rows: int, seed: int) -> Floats:
    """Draw normal contexts: ``[R, n, D]``."""
    rng = np.random.default_rng((seed, 1))
    return rng.normal(size=(replicas, rows, problem.context_width))


def some_feedback(problem: Problem, replicas: int, rows: int, seed: int) -> Feedback:
    """Draw uniform actions with rewards at any level, and propensities as if from anywhere."""
    rng = np.random.default_rng((seed, 2))
    shape = (replicas, rows)
    return Feedback(
        context=some_contexts(problem, replicas, rows, seed),
        action=problem.space.action(rng.integers(problem.space.size, size=shape)),
        reward=rng.choice(np.array(problem.levels), size=shape),
        log_prob=np.log(rng.uniform(0.1, 1.0, size=shape)),
        weight=np.ones(shape),
    )


def clear_feedback(problem: Problem, replicas: int, rows: int) -> list[Feedback]:
    """Make histories with one good action, with good ones only, and with bad ones only."""
    index = np.tile(np.arange(rows) % problem.space.size, (replicas, 1))
    low, high = problem.levels[0], problem.levels[-1]
    return [
        Feedback(
            context=np.ones((*index.shape, problem.context_width)),
            action=problem.space.action(index),
            reward=np.where(good, high, low),
            log_prob=np.full(index.shape, -np.log(problem.space.size)),
            weight=np.ones(index.shape),
        )
        for good in (index == 0, index >= 0, index < 0)
    ]


def padded(feedback: Feedback) -> Feedback:
    """Put a row that is not there before every row, full of values that must not be read."""
    assert feedback.log_prob is not None
    return Feedback(
        context=_interleaved(feedback.context, np.nan),
        action=_interleaved(feedback.action, -1),
        reward=_interleaved(feedback.reward, np.nan),
        log_prob=_interleaved(feedback.log_prob, -np.inf),
        weight=_interleaved(feedback.weight, 0.0),
    )


def rows_of(feedback: Feedback, rows: slice | Integers) -> Feedback:
    """Take some decisions of every replica."""
    assert feedback.log_prob is not None
    return Feedback(
        context=feedback.context[:, rows],
        action=feedback.action[:, rows],
        reward=feedback.reward[:, rows],
        log_prob=feedback.log_prob[:, rows],
        weight=feedback.weight[:, rows],
    )


def repeated(feedback: Feedback, replicas: int) -> Feedback:
    """Give every replica the feedback of the first."""
    assert feedback.log_prob is not None
    return Feedback(
        context=feedback.context[:1].repeat(replicas, axis=0),
        action=feedback.action[:1].repeat(replicas, axis=0),
        reward=feedback.reward[:1].repeat(replicas, axis=0),
        log_prob=feedback.log_prob[:1].repeat(replicas, axis=0),
        weight=feedback.weight[:1].repeat(replicas, axis=0),
    )


def first_replica_changed(problem: Problem, feedback: Feedback) -> Iterator[Feedback]:
    """Let replica 0 alone find nothing good, then each of the first actions in turn."""
    index = problem.space.index(feedback.action[0])
    for favourite in range(-1, min(problem.space.size, 3)):
        reward = feedback.reward.copy()
        reward[0] = np.where(index == favourite, problem.levels[-1], problem.levels[0])
        yield feedback._replace(reward=reward)


def _interleaved(values: NDArray[Number], filler: float) -> NDArray[Number]:
    result = np.full((values.shape[0], 2 * values.shape[1], *values.shape[2:]), filler)
    result[:, 1::2] = values
    return result.astype(values.dtype)
