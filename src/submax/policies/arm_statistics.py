"""What the classic policies count, and work in parts of bounded size."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.numerics import tally
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.memory import Buffer, Memory

EVERYTHING = Memory()
"""All rewards count, whatever their age."""
ArmState = TypeVar("ArmState", bound=Any)
"""A named tuple with a ``problem`` and arrays ``[R, A]``."""


def kept_columns(state: ArmState, choices: Choices, *names: str) -> ArmState:
    """Return a state with only the joint actions of these choices, in the arrays of these names."""
    kept = state.problem.space.indices_of(choices)
    columns = {name: getattr(state, name)[:, kept] for name in names}
    return state._replace(problem=state.problem.restricted(choices), **columns)


@serializable("arm-statistics")
class ArmStatistics(NamedTuple):
    """``pulls [R, A]`` with an observed reward, and the sums ``rewards [R, A]`` of these.

    ``history`` are the rows themselves, if a memory takes single rows out of the sums again.
    """

    problem: Problem
    pulls: Floats
    rewards: Floats
    history: Buffer | None = None

    @classmethod
    def empty(cls, problem: Problem, replicas: int, memory: Memory = EVERYTHING) -> Self:
        problem.space.check_listable("this policy")
        shape, history = (replicas, problem.space.size), None
        if memory.drops_rows:
            history = Buffer.empty(replace(problem, context_width=0), replicas)
        return cls(problem, np.zeros(shape), np.zeros(shape), history)

    def add(self, feedback: Feedback) -> Self:
        feedback.check(self.problem)
        return self.with_rows(feedback.action, feedback.reward, feedback.weight)

    def remembering(self, feedback: Feedback, memory: Memory, rng: np.random.Generator) -> Self:
        if self.history is not None:
            feedback.check(self.problem)
            feedback = feedback._replace(context=np.zeros((*feedback.reward.shape, 0)))
            rows = self.history.add(feedback, memory, rng)
            nothing = type(self).empty(self.problem, len(self.pulls))._replace(history=rows)
            return nothing.with_rows(rows.action.astype(np.int64), rows.reward, rows.weight)
        if memory.discount == 1:
            return self.add(feedback)
        there = feedback.weight > 0
        new = there.sum(axis=1)
        later = np.maximum(new[:, None] - np.cumsum(there, axis=1), 0)
        faded = (memory.discount**new)[:, None]
        old = self._replace(pulls=faded * self.pulls, rewards=faded * self.rewards)
        return old.add(feedback._replace(weight=feedback.weight * memory.discount**later))

    def with_rows(self, action: Integers, reward: Floats, weight: Floats) -> Self:
        """The statistics after more rows, ``action [R, n, S]``, which are not checked."""
        index, size = self.problem.space.index(action), self.pulls.shape[-1]
        earned = weight * np.where(weight > 0, reward, 0.0)
        return self._replace(
            pulls=self.pulls + tally(index, weight, size),
            rewards=self.rewards + tally(index, earned, size),
        )

    def restricted(self, choices: Choices) -> Self:
        return kept_columns(self, choices, "pulls", "rewards")._replace(history=None)

    def means(self) -> Floats:
        """Average reward of every action, ``[R, A]``; 0 for an action that was never pulled."""
        return self.rewards / np.where(self.pulls > 0, self.pulls, 1.0)

    def successes(self, caller: str) -> Floats:
        """Number of successes, ``[R, A]``: each reward, scaled to 0 … 1, is a part of one."""
        lowest, highest = self.problem.scale.known_bounds(caller)
        return (self.rewards - lowest * self.pulls) / (highest - lowest)


class ArmPolicy(Policy[ArmStatistics]):
    """A policy that learns the pulls and rewards of every arm and ignores the context."""

    needs_bounds: ClassVar[bool] = True
    """Whether rewards are scaled to 0 … 1, so their bounds must be known."""

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ArmStatistics:
        if self.needs_bounds:
            problem.scale.known_bounds(f"the {type(self).__name__} policy")
        return ArmStatistics.empty(problem, replicas)

    def update(
        self, state: ArmStatistics, feedback: Feedback, rng: np.random.Generator
    ) -> ArmStatistics:
        return state.add(feedback)


def by_rows(function: Callable[..., Any], rows: int, *values: Any) -> Any:
    """Apply a function to so many rows of arrays ``[R, n, ...]`` at a time, and join the results.

    A result is an array, or a tuple of arrays. Where n is 0, there is one part without rows.
    """
    count = values[0].shape[1] or 1
    parts = [
        function(*(one[:, begin : begin + rows] for one in values))
        for begin in range(0, count, rows)
    ]
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], tuple):
        joined = (np.concatenate(same, axis=1) for same in zip(*parts, strict=True))
        return type(parts[0])(*joined)
    return np.concatenate(parts, axis=1)
