"""A sharper or softer variant of another policy."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import non_negative
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.core.contracts.wrapper_policy import WrapperPolicy
from submax.core.numerics.categorical import draw, log_prob_of
from submax.core.numerics.sharpening import sharpened


@dataclass(frozen=True)
class Tempered(WrapperPolicy):
    """π'(a | c) ∝ π(a | c)^(1/τ), with π the other ``policy`` and τ the ``temperature``.

    With τ = 0 it takes the most likely action; tied actions share the probability. It learns
    exactly as the other policy does. A greedy variant earns more from what is known and explores
    less, so that it suits a policy that was learned from a log and is not learned further.
    """

    policy: Policy[Any]
    temperature: float = 0.0

    def __post_init__(self) -> None:
        non_negative("temperature", self.temperature)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Any:
        problem.space.check_listable("a tempered policy", "take the policy itself")
        return super().init(problem, replicas, rng)

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
        probabilities = self.probabilities(state, context)
        index = draw(probabilities, context.shape[1], rng)
        return ChosenActions(state.problem.space.action(index), log_prob_of(probabilities, index))

    def log_prob(self, state: Any, context: Floats, action: Actions) -> Floats:
        state.problem.check_action(action)
        index = state.problem.space.index(action.astype(np.int64))
        return log_prob_of(self.probabilities(state, context), index)

    def probabilities(self, state: Any, context: Floats) -> Floats:
        return sharpened(super().probabilities(state, context), self.temperature)

    def stepper(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Stepper | None:
        return None
