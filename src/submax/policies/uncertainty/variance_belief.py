"""A value network with a second network for its squared residuals."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.rewards.continuous import Continuous
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.models.networks.replicas import parameters_where
from submax.policies.neural.value_belief import ValueBelief, reward_shares

SQUARES = Continuous(low=0.0, high=1.0)
"""Squared residuals of rewards that are scaled to the range from 0 to 1 lie in this range, too."""


@stored("variance-belief")
class VarianceBelief(NamedTuple):
    """The value v(a, c) of one network, and s²(a, c), the squared residual that another predicts.

    The second network is trained on (r_i − v(a_i, c_i))² for all observations, with the same loss
    and the same training as the first one. Rewards are scaled to the range from 0 to 1.

    Reference: Rawson and Freeman (2021).

    *Departs from the paper:* both networks read the action as an input, and are trained again on
    all observations at each update. Squared residuals are predicted by a sigmoid, trained by
    cross-entropy, so that s² cannot be negative.
    """

    mean: ValueBelief
    variance: ValueBelief

    @property
    def problem(self) -> Problem:
        """The problem that the networks are trained for."""
        return self.mean.problem

    @classmethod
    def empty(cls, problem: Problem, replicas: int, hidden: int) -> Self:
        """Return the belief before any feedback: all actions have the same value and variance."""
        squares = Problem(problem.space, problem.context_width, SQUARES)
        return cls(
            ValueBelief.empty(problem, replicas, hidden),
            ValueBelief.empty(squares, replicas, hidden),
        )

    def restricted(self, choices: Choices) -> Self:
        """Return the belief about these choices alone."""
        return self._replace(
            mean=self.mean.restricted(choices), variance=self.variance.restricted(choices)
        )

    def trained(
        self, feedback: Feedback, training: Training, dropout: float, rng: np.random.Generator
    ) -> Self:
        """Return the belief after more feedback; the same object if the feedback has no rows."""
        mean = self.mean.trained(feedback, training, dropout, rng)
        if mean is self.mean:
            return self
        buffer = mean.buffer
        reward = reward_shares(self.problem.scale, buffer, buffer.reward)
        learned = np.any(feedback.weight > 0, axis=1)
        squares = Feedback(
            buffer.context.astype(np.float64),
            buffer.action,
            np.clip((reward - mean.values_of(buffer)) ** 2, 0.0, 1.0),
            None,
            buffer.weight * learned[:, None],
        )
        old = self.variance
        fresh = ValueBelief.unlisted(old.problem, len(learned), old.network.head_weight.shape[1])
        new = fresh.trained(squares, training, dropout, rng)
        variance = old._replace(
            parameters=parameters_where(learned, new.parameters, old.parameters),
            network=new.network.where(learned, old.network),
            scaling=new.scaling if new.scaling is None else new.scaling.where(learned, old.scaling),
        )
        return type(self)(mean, variance)

    def scores(self, context: Floats) -> tuple[Floats, Floats]:
        """Return v(a, c) and s(a, c) of every joint action, both ``[R, n, M]``."""
        return self.mean.values(context), np.sqrt(self.variance.values(context))
