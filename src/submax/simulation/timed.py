"""A wrapper that measures how long a policy takes to decide and to learn."""

import time
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.wrapper_policy import WrapperPolicy


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

    def __repr__(self) -> str:
        return repr(self.policy)
