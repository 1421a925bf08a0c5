"""Contract of a policy."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.decision import Decision
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem


class PolicyState(Protocol):
    """What is learned: a NamedTuple of arrays that also names the problem it belongs to."""

    @property
    def problem(self) -> Problem:
        """The problem the state was made for."""


State = TypeVar("State", bound=PolicyState)


class Policy(ABC, Generic[State]):
    """Hyper-parameters and the pure functions between states.

    Every array begins ``[R, n]``: R replicas, n decisions taken together.
    """

    @abstractmethod
    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> State:
        """The state before any feedback."""

    @abstractmethod
    def act(self, state: State, context: Floats, rng: np.random.Generator) -> Decision:
        """Decide once for every row of ``context [R, n, D]``."""

    @abstractmethod
    def log_prob(self, state: State, context: Floats, action: Actions) -> Floats:
        """Log-probability that ``act`` chooses these actions, row by row."""

    @abstractmethod
    def update(self, state: State, feedback: Feedback, rng: np.random.Generator) -> State:
        """The state after feedback has come back."""

    def probabilities(self, state: State, context: Floats) -> Floats:
        """Probability of every joint action in each row, ``[R, n, M]``, or ``[R, 1, M]`` for all.

        A policy that has them at hand overrides this.
        """
        listing = state.problem.space.listing()
        replicas, rows, _ = context.shape
        repeated = np.repeat(context, len(listing), axis=1)
        actions = np.broadcast_to(
            np.tile(listing, (rows, 1)), (*repeated.shape[:2], listing.shape[1])
        )
        found = np.exp(self.log_prob(state, repeated, actions))
        return found.reshape(replicas, rows, len(listing))

    def record(self, state: State, action: Actions) -> State:
        """The state after ``action [R, n, S]`` was taken and its reward is awaited.

        Most policies learn from rewards alone; one that counts pending pulls overrides this.
        """
        return state

    def expecting(self, state: State, decisions: int) -> State:
        """The state, told how many decisions will be taken before their rewards can be learned.

        Most policies do not ask; one that does guesses from ``record`` and ``update`` otherwise.
        """
        return state

    @property
    def ignores_context(self) -> bool:
        """Whether decisions are the same in all contexts."""
        return False

    @property
    def needs_propensities(self) -> bool:
        """Whether it learns from the probabilities with which actions were chosen."""
        return False

    @property
    def trains_networks(self) -> bool:
        """Whether ``update`` trains a model on all rows kept: many rows at a time are best."""
        return False

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Instances that the conformance suite runs."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Instances with a name of their own, on the command line, in TOML and over HTTP."""
        return {}
