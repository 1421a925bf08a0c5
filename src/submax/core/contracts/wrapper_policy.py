"""Base class of policies that wrap another policy."""

from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.core.spaces.space import Choices


class WrapperPolicy(Policy[Any]):
    """Forwards everything to another policy; a subclass overrides what it changes.

    Only ``expected_rewards`` and ``for_single_decisions`` are not forwarded: a wrapper may change
    rewards or actions, and what the other policy believes or prepares would then be misleading.

    The other policy is the field ``policy``. A wrapper that chooses it by the problem overrides
    ``wrapped`` and ``facts`` instead.
    """

    policy: Policy[Any]

    def wrapped(self, problem: Problem) -> Policy[Any]:
        """Return the policy that decides in this problem."""
        return self.policy

    @property
    def facts(self) -> Facts:
        return self.policy.facts

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Any:
        return self.wrapped(problem).init(problem, replicas, rng)

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
        return self.wrapped(state.problem).act(state, context, rng)

    def log_prob(self, state: Any, context: Floats, action: Actions) -> Floats:
        return self.wrapped(state.problem).log_prob(state, context, action)

    def probabilities(self, state: Any, context: Floats) -> Floats:
        return self.wrapped(state.problem).probabilities(state, context)

    def restricted(self, state: Any, choices: Choices) -> Any:
        return self.wrapped(state.problem).restricted(state, choices)

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        return self.wrapped(state.problem).update(state, feedback, rng)

    def record(
        self, state: Any, action: Actions | None = None, *, upcoming: int | None = None
    ) -> Any:
        return self.wrapped(state.problem).record(state, action, upcoming=upcoming)

    def stepper(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Stepper | None:
        return self.wrapped(problem).stepper(problem, replicas, rng)
