"""Contract of a policy."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.decision import Decision
from submax.core.feedback import Feedback
from submax.core.problem import Problem


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

    def record(self, state: State, action: Actions) -> State:
        """The state after ``action [R, n, S]`` was taken and its reward is awaited.

        Most policies learn from rewards alone; one that counts pending pulls overrides this.
        """
        return state

    @property
    def trains_networks(self) -> bool:
        """Whether ``update`` trains by JAX, on a GPU where there is one."""
        return False

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Instances that the conformance suite runs."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Instances with a name of their own, on the command line, in TOML and over HTTP."""
        return {}
