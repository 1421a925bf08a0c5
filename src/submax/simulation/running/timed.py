"""A wrapper that measures how long a policy takes to decide and to learn."""

import time
from typing import Any, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.look_ahead_stepper import LookAheadStepper
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.core.contracts.wrapper_policy import WrapperPolicy
from submax.simulation.running.single_steps import stepper_of
from submax.simulation.running.timed_look_ahead import TimedLookAhead
from submax.simulation.running.timed_stepper import TimedStepper


class Timed(WrapperPolicy):
    """Another policy, with the seconds that its ``act`` and its ``update`` have taken so far."""

    def __init__(self, policy: Policy[Any]) -> None:
        self.policy = policy
        self.deciding = 0.0
        self.learning = 0.0

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
        begin = time.perf_counter()
        decision = self.policy.act(state, context, rng)
        self.deciding += time.perf_counter() - begin
        return decision

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        begin = time.perf_counter()
        after = self.policy.update(state, feedback, rng)
        self.learning += time.perf_counter() - begin
        return after

    def stepper(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Stepper | None:
        stepper = stepper_of(self.policy, problem, replicas, rng)
        if isinstance(stepper, LookAheadStepper):
            return TimedLookAhead(stepper, self)
        return None if stepper is None else TimedStepper(stepper, self)

    def for_single_decisions(self) -> Self:
        """Measure the policy for single decisions from now on."""
        self.policy = self.policy.for_single_decisions()
        return self

    def __repr__(self) -> str:
        return repr(self.policy)
