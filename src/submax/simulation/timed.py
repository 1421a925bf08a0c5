"""How long a policy takes to decide and to learn."""

import time
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.decision import Decision
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem


class Timed(Policy[Any]):
    """A policy that does what another one does, and adds up the seconds."""

    def __init__(self, policy: Policy[Any]) -> None:
        self._policy = policy
        self.deciding = 0.0
        self.learning = 0.0

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Any:
        """As the other."""
        return self._policy.init(problem, replicas, rng)

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> Decision:
        """As the other, timed."""
        begin = time.perf_counter()
        decision = self._policy.act(state, context, rng)
        self.deciding += time.perf_counter() - begin
        return decision

    def log_prob(self, state: Any, context: Floats, action: Integers) -> Floats:
        """As the other."""
        return self._policy.log_prob(state, context, action)

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        """As the other, timed."""
        begin = time.perf_counter()
        after = self._policy.update(state, feedback, rng)
        self.learning += time.perf_counter() - begin
        return after

    def record(self, state: Any, action: Integers) -> Any:
        """As the other."""
        return self._policy.record(state, action)

    @property
    def needs_propensities(self) -> bool:
        """Whether the other policy does."""
        return self._policy.needs_propensities

    @property
    def trains_networks(self) -> bool:
        """As the other."""
        return self._policy.trains_networks

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """None: it is no policy of its own."""
        yield from ()

    def __repr__(self) -> str:
        return repr(self._policy)
