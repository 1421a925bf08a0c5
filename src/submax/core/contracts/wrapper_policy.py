"""Base class of policies that wrap another policy."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem


class WrapperPolicy(Policy[Any]):
    """Forward every call to ``policy``; a subclass overrides the methods that it changes."""

    policy: Policy[Any]

    @property
    def facts(self) -> Facts:
        return self.policy.facts

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Any:
        return self.policy.init(problem, replicas, rng)

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
        return self.policy.act(state, context, rng)

    def log_prob(self, state: Any, context: Floats, action: Actions) -> Floats:
        return self.policy.log_prob(state, context, action)

    def probabilities(self, state: Any, context: Floats) -> Floats:
        return self.policy.probabilities(state, context)

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        return self.policy.update(state, feedback, rng)

    def record(
        self, state: Any, action: Actions | None = None, *, upcoming: int | None = None
    ) -> Any:
        return self.policy.record(state, action, upcoming=upcoming)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield nothing: the conformance suite tests the wrapped policies."""
        yield from ()
