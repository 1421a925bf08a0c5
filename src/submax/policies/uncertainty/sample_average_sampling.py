"""Sampling of values with sample-average uncertainty."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import non_negative
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.numerics.categorical import log_prob_of
from submax.policies.neural.largest_normal import largest_normal
from submax.policies.uncertainty.residual_belief import ResidualBelief
from submax.policies.uncertainty.sample_average_policy import SampleAveragePolicy


@dataclass(frozen=True)
class SampleAverageSampling(SampleAveragePolicy):
    """Draw a value N(v(a, c), ν² τ_a² / n_a) for each action and take the action with the largest.

    v is the value network, τ_a² the mean squared residual of action a and n_a the number of its
    observations. ν is ``scale``, which is 1 in the paper: the larger, the more is explored.
    π(a | c), the probability that the draw of a is the largest, is computed by quadrature.

    Reference: Zhu and Rigotti (2021). `ResidualBelief` says where it departs from the paper.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        non_negative("scale", self.scale)
        super().__post_init__()

    def act(
        self, state: ResidualBelief, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        value, error = state.scores(context)
        score = value + self.scale * error * rng.normal(size=value.shape)
        # Ties, which occur if the scale is 0, are broken at random.
        best = score == score.max(axis=-1, keepdims=True)
        index = np.where(best, rng.random(best.shape), -1.0).argmax(axis=-1)
        return ChosenActions(state.problem.space.action(index), None)

    def log_prob(self, state: ResidualBelief, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        index = state.problem.space.index(action)
        return log_prob_of(self.probabilities(state, context), index)

    def probabilities(self, state: ResidualBelief, context: Floats) -> Floats:
        value, error = state.scores(context)
        return largest_normal(value, np.broadcast_to(self.scale * error, value.shape))
