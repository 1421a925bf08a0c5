"""What a simulation leaves behind."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers


class Trace(NamedTuple):
    """The run at P of its decisions, the last one always among them.

    ``steps [P]`` counts decisions from 1; ``actions [R, P, S]`` and ``rewards [R, P]`` are those
    of these decisions; ``accumulated_reward`` and ``accumulated_regret``, both ``[R, P]``, add up
    all decisions so far, whether they are among the P or not.
    """

    steps: Integers
    actions: Integers
    rewards: Floats
    accumulated_reward: Floats
    accumulated_regret: Floats

    @property
    def final_regret(self) -> Floats:
        """Regret of each replica at the end, ``[R]``."""
        return self.accumulated_regret[:, -1]

    @property
    def final_reward(self) -> Floats:
        """Reward of each replica at the end, ``[R]``."""
        return self.accumulated_reward[:, -1]


class Recorder:
    """Fills a trace block by block, keeping only the decisions that were asked for."""

    def __init__(self, observations: int, points: int | None) -> None:
        self._steps = kept_steps(observations, points)
        self._done = 0
        self._blocks: list[tuple[Integers, Floats, Floats, Floats]] = []
        self._reward: Floats | float = 0.0
        self._regret: Floats | float = 0.0

    def add(self, actions: Integers, rewards: Floats, regret: Floats) -> None:
        """Record one block of decisions, each array ``[R, n, ...]``."""
        count = rewards.shape[1]
        begin, end = np.searchsorted(self._steps, [self._done + 1, self._done + count + 1])
        kept = self._steps[begin:end] - self._done - 1
        reward_so_far, self._reward = _accumulated(self._reward, rewards, kept)
        regret_so_far, self._regret = _accumulated(self._regret, regret, kept)
        self._blocks.append((actions[:, kept], rewards[:, kept], reward_so_far, regret_so_far))
        self._done += count

    def trace(self) -> Trace:
        """Everything recorded."""
        columns = (np.concatenate(blocks, axis=1) for blocks in zip(*self._blocks, strict=True))
        return Trace(self._steps, *columns)


def _accumulated(before: Floats | float, values: Floats, kept: Integers) -> tuple[Floats, Floats]:
    """The running sum at the kept columns, and at the end of the block."""
    pieces = np.unique(np.concatenate(([0], kept + 1)))
    pieces = pieces[pieces < values.shape[1]]
    sums = before + np.cumsum(np.add.reduceat(values, pieces, axis=1), axis=1)
    return sums[:, : len(kept)], sums[:, -1:]


def kept_steps(observations: int, points: int | None) -> Integers:
    """At most ``points`` evenly spaced decisions that end with the last; all for None.

    >>> kept_steps(10, 4).tolist()
    [2, 5, 8, 10]
    """
    if points is None or points >= observations:
        return np.arange(1, observations + 1, dtype=np.int64)
    return np.round(np.arange(1, points + 1) * (observations / points)).astype(np.int64)
