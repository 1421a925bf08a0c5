"""Base class of policies that compute the probability of every joint action."""

from abc import abstractmethod

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.policy import Policy, State
from submax.core.errors import InputError
from submax.core.numerics.categorical import draw, log_prob_of


class ListingPolicy(Policy[State]):
    """A policy defined by ``probabilities``; ``act`` and ``log_prob`` are derived from them."""

    @abstractmethod
    def probabilities(self, state: State, context: Floats) -> Floats:
        """Return the probability of every joint action, ``[R, n, M]`` or ``[R, 1, M]``."""

    def act(self, state: State, context: Floats, rng: np.random.Generator) -> ChosenActions:
        probabilities = self.probabilities(state, context)
        _check(self, probabilities, context, state.problem.space.size)
        index = draw(probabilities, context.shape[1], rng)
        return ChosenActions(state.problem.space.action(index), log_prob_of(probabilities, index))

    def log_prob(self, state: State, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        probabilities = self.probabilities(state, context)
        return log_prob_of(probabilities, state.problem.space.index(action))


def _check(policy: object, probabilities: Floats, context: Floats, size: int) -> None:
    replicas, rows = context.shape[:2]
    if probabilities.shape not in ((replicas, rows, size), (replicas, 1, size)):
        raise InputError(
            f"the probabilities of {policy} must have shape [R, n, M] = {(replicas, rows, size)} "
            f"or [R, 1, M] = {(replicas, 1, size)}, not {probabilities.shape}: R replicas, n "
            "decisions, M joint actions"
        )
    if probabilities.min(initial=0) < 0:
        raise InputError(
            f"the probabilities of {policy} must be 0 or more, and one is {probabilities.min():.6g}"
        )
