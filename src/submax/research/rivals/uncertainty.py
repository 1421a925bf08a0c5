"""Value networks with an uncertainty of their own: sample averages and a network for residuals."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import NonNegative
from submax.core.numerics import highest
from submax.core.policy import TabularPolicy
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Continuous
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.networks.choices import parameters_where
from submax.models.training_settings import Training
from submax.research.rivals.neural import NormalSampling
from submax.research.rivals.value_networks import (
    ValueBelief,
    ValueNetworkPolicy,
    reward_shares,
)

FIRST_SQUARE = 1.0
"""The sum of squared residuals of an action begins with this, the largest squared residual of
rewards between 0 and 1, as in the paper's algorithm."""


@serializable("residual-belief")
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


class SampleAveragePolicy(ValueNetworkPolicy[ResidualBelief], TabularPolicy[ResidualBelief]):
    """A policy that decides by the values and standard errors that a `ResidualBelief` gives."""

    belief = ResidualBelief


@dataclass(frozen=True)
class SampleAverageSampling(SampleAveragePolicy, NormalSampling[ResidualBelief]):
    """Draw a value N(v(a, c), ν² τ_a² / n_a) for each action and take the action with the largest.

    v is the value network, τ_a² the mean squared residual of action a and n_a the number of its
    observations. ν is ``scale``, which is 1 in the paper: the larger, the more is explored.
    π(a | c), the probability that the draw of a is the largest, is computed by quadrature.

    Reference: Zhu and Rigotti (2021). `ResidualBelief` says where it departs from the paper.
    """

    scale: NonNegative = 1.0


@dataclass(frozen=True)
class SampleAverageUCB(SampleAveragePolicy):
    """Take the action with the highest upper confidence bound, v(a, c) + γ τ_a √(ln n / n_a).

    v is the value network, τ_a² the mean squared residual of action a, n_a the number of its
    observations and n that of all actions. γ is ``width``, which is 1 in the paper: the larger, the
    more is explored. Actions with equal bounds share the probability.

    Reference: Zhu and Rigotti (2021). `ResidualBelief` says where it departs from the paper.
    """

    width: NonNegative = 1.0

    def probabilities(self, state: ResidualBelief, context: Floats) -> Floats:
        value, error = state.scores(context)
        total = np.maximum(state.counts.sum(axis=1), 1.0)[:, None, None]
        return highest(value + self.width * np.sqrt(np.log(total)) * error)


SQUARES = Continuous(low=0.0, high=1.0)
"""Squared residuals of rewards that are scaled to the range from 0 to 1 lie in this range, too."""


@serializable("variance-belief")
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


@dataclass(frozen=True)
class VarianceNetworkUCB(ValueNetworkPolicy[VarianceBelief], TabularPolicy[VarianceBelief]):
    """Take the action with the highest upper confidence bound, v(a, c) + γ s(a, c).

    v is a value network with two layers of ``hidden`` units, trained as ``training`` says, with the
    probability ``dropout`` of leaving out a unit in training. s² is a second network of the same
    form, which predicts the squared residual of the first. γ is ``width``: the larger, the more is
    explored. Actions with equal bounds share the probability.

    Reference: Rawson and Freeman (2021). `VarianceBelief` says where it departs from the paper.
    """

    width: NonNegative = 0.1
    belief = VarianceBelief

    def probabilities(self, state: VarianceBelief, context: Floats) -> Floats:
        value, deviation = state.scores(context)
        return highest(value + self.width * deviation)
