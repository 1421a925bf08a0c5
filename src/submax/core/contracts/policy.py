"""Contract of a policy."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.decision import Decision
from submax.core.contracts.facts import Facts
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

    def record(
        self, state: State, action: Actions | None = None, *, upcoming: int | None = None
    ) -> State:
        """The state after it was told of decisions whose rewards are awaited.

        ``action [R, n, S]`` are decisions that were just taken. ``upcoming`` is how many decisions
        will be taken before a reward can be learned from. Most policies learn from rewards alone
        and need not override this.
        """
        return state

    @property
    def facts(self) -> Facts:
        """What callers rely on beyond the decisions."""
        return Facts()

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Instances that the conformance suite runs."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Instances with a name of their own, on the command line, in TOML and over HTTP."""
        return {}
