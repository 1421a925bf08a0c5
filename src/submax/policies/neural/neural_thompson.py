"""Thompson sampling on a value network with gradient features."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import non_negative
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.numerics.categorical import log_prob_of
from submax.policies.neural.gradient_belief import GradientBelief
from submax.policies.neural.gradient_feature_policy import GradientFeaturePolicy
from submax.policies.neural.largest_normal import largest_normal


@dataclass(frozen=True)
class NeuralThompson(GradientFeaturePolicy):
    """Draw a value N(f(a, c), ν² gᵀ U⁻¹ g) for each action and take the action with the largest.

    f is the logit of a value network with two layers of ``hidden`` units, trained as ``training``
    says. g is the gradient of f with respect to the network's parameters, U the diagonal of
    ρ I + Σ g gᵀ over the observations. ρ is ``ridge``; ν is ``scale``: the larger, the more is
    explored. π(a | c), the probability that a's draw is the largest, is computed by quadrature.

    Reference: Zhang et al. (2021). `GradientBelief` says where it departs from the paper.
    """

    scale: float = 0.1

    def __post_init__(self) -> None:
        non_negative("scale", self.scale)
        super().__post_init__()

    def act(
        self, state: GradientBelief, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        logit, deviation = state.scores(context)
        score = logit + self.scale * deviation * rng.normal(size=logit.shape)
        # Ties, as between all actions before the first feedback, are broken at random.
        best = score == score.max(axis=-1, keepdims=True)
        index = np.where(best, rng.random(best.shape), -1.0).argmax(axis=-1)
        return ChosenActions(state.problem.space.action(index), None)

    def log_prob(self, state: GradientBelief, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        index = state.problem.space.index(action)
        return log_prob_of(self.probabilities(state, context), index)

    def probabilities(self, state: GradientBelief, context: Floats) -> Floats:
        logit, deviation = state.scores(context)
        return largest_normal(logit, self.scale * deviation)
