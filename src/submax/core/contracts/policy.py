"""Base class of policies."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem


class PolicyState(Protocol):
    """What a policy has learned: a NamedTuple of arrays, and the problem it belongs to."""

    @property
    def problem(self) -> Problem:
        """The problem that the state was initialized for."""


State = TypeVar("State", bound=PolicyState)


class Policy(ABC, Generic[State]):
    """Hyper-parameters, and pure functions that map a state to decisions and to the next state.

    The first axes of every array are ``[R, n]``: R replicas, and n decisions taken together.
    """

    @abstractmethod
    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> State:
        """Return the state before any feedback."""

    @abstractmethod
    def act(self, state: State, context: Floats, rng: np.random.Generator) -> ChosenActions:
        """Choose an action for every row of ``context [R, n, D]``."""

    @abstractmethod
    def log_prob(self, state: State, context: Floats, action: Actions) -> Floats:
        """Return the log-probability that ``act`` chooses the action of each row: ``[R, n]``."""

    @abstractmethod
    def update(self, state: State, feedback: Feedback, rng: np.random.Generator) -> State:
        """Return the state after learning from the feedback."""

    def probabilities(self, state: State, context: Floats) -> Floats:
        """Return the probability of every joint action: ``[R, n, M]``.

        The shape is ``[R, 1, M]`` if all rows have the same probabilities. By default ``log_prob``
        is evaluated for all joint actions. A policy that has a faster way overrides this method.
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
        """Return the state after recording decisions whose rewards have not arrived yet.

        ``action [R, n, S]`` are the actions that were just chosen. ``upcoming`` is the number of
        decisions that will be taken before the next update. Most policies learn from rewards alone
        and do not override this method.
        """
        return state

    @property
    def facts(self) -> Facts:
        """Properties of the policy that callers rely on."""
        return Facts()

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Yield instances for the conformance suite."""

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Return named instances, for use on the command line, in TOML files and over HTTP."""
        return {}
