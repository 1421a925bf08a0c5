"""A value network with the mean squared residual of every action."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.neural.value_belief import ValueBelief, reward_shares

FIRST_SQUARE = 1.0
"""The sum of squared residuals of an action begins with this, the largest squared residual of
rewards between 0 and 1, as in the paper's algorithm."""


@stored("residual-belief")
class ResidualBelief(NamedTuple):
    """The value v(a, c) of a network, with τ_a² = S_a / n_a, the mean squared residual of action a.

    S_a is 1 plus the sum of (r_i − v_i(a, c_i))² over the observations of a, ``squares [R, M]``,
    and n_a their number, ``counts [R, M]``. The prediction v_i is that of the network from before
    observation i was learned from. Rewards are scaled to the range from 0 to 1, and v is the
    sigmoid of the network's output.

    Reference: Zhu and Rigotti (2021), algorithm 1.

    *Departs from the paper:* the network reads the action as an input, whereas the paper has one
    network for each action. Rewards come in batches, whose residuals all refer to the network
    before the batch. An action without observations counts as observed once.
    """

    belief: ValueBelief
    squares: Floats
    counts: Floats

    @property
    def problem(self) -> Problem:
        """The problem that the network is trained for."""
        return self.belief.problem

    @classmethod
    def empty(cls, problem: Problem, replicas: int, hidden: int) -> Self:
        """Return the belief before any feedback."""
        belief = ValueBelief.empty(problem, replicas, hidden)
        shape = (replicas, problem.space.size)
        return cls(belief, np.full(shape, FIRST_SQUARE), np.zeros(shape))

    def restricted(self, choices: Choices) -> Self:
        """Return the belief about the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            belief=self.belief.restricted(choices),
            squares=self.squares[:, kept],
            counts=self.counts[:, kept],
        )

    def trained(
        self, feedback: Feedback, training: Training, dropout: float, rng: np.random.Generator
    ) -> Self:
        """Return the belief after more feedback; the same object if the feedback has no rows."""
        belief = self.belief.trained(feedback, training, dropout, rng)
        if belief is self.belief:
            return self
        squares, counts = self.squares.copy(), self.counts.copy()
        replica, row = np.nonzero(feedback.weight > 0)
        action = self.problem.space.index(feedback.action[replica, row])
        reward = reward_shares(self.problem.scale, belief.buffer, feedback.reward)
        residual = (reward - self.belief.values_of(feedback))[replica, row]
        weight = feedback.weight[replica, row]
        np.add.at(squares, (replica, action), weight * residual**2)
        np.add.at(counts, (replica, action), weight)
        return type(self)(belief, squares, counts)

    def scores(self, context: Floats) -> tuple[Floats, Floats]:
        """Return v(a, c), ``[R, n, M]``, and its standard error τ_a / √n_a, ``[R, 1, M]``."""
        counts = np.maximum(self.counts, 1.0)
        return self.belief.values(context), np.sqrt(self.squares / counts**2)[:, None]
